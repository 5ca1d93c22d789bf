//! States read and written inside one transaction.

use crate::row::{self, Key};
use heed::types::Bytes;
use heed::{Database, RoTxn, RwTxn, WithoutTls};
use std::cell::RefCell;
use std::ops::Bound::{Excluded, Unbounded};
use tidegate_core::State;
use tidegate_table::Digest;
use tidegate_table::states::States;

pub(crate) type Rows = Database<Bytes, Bytes>;

/// Why a transaction came to nothing.
pub(crate) enum Fault {
    Engine(heed::Error),
    /// A row that is not what was written.
    Row,
}

impl From<heed::Error> for Fault {
    fn from(error: heed::Error) -> Fault {
        Fault::Engine(error)
    }
}

/// Takes what is there, and keeps the first fault for the end: whoever plans a call on states knows nothing of them.
fn kept<T: Default>(fault: &RefCell<Option<Fault>>, read: impl FnOnce() -> Result<T, Fault>) -> T {
    read().unwrap_or_else(|new| {
        fault.borrow_mut().get_or_insert(new);
        T::default()
    })
}

fn state(rows: Rows, txn: &RoTxn<'_>, key: &Key) -> Result<Option<State>, Fault> {
    let Some(bytes) = rows.get(txn, key)? else { return Ok(None) };
    row::read(key, bytes).map(|(state, _)| Some(state)).ok_or(Fault::Row)
}

/// Only reads: planning needs no more.
pub(crate) struct Reading<'t> {
    pub(crate) rows: Rows,
    pub(crate) txn: RoTxn<'t, WithoutTls>,
    pub(crate) fault: RefCell<Option<Fault>>,
}

impl States for Reading<'_> {
    fn read(&self, digest: Digest) -> Option<State> {
        kept(&self.fault, || state(self.rows, &self.txn, &digest.to_bytes()))
    }

    fn write(&mut self, _: Digest, _: State, _: f64, _: f64) {}

    fn remove(&mut self, _: Digest) {}
}

/// States that were looked at for one to drop, where there is no room; where there is, for any that are full.
const SAMPLE: usize = 64;
const PASSED: usize = 8;
/// At most so many are dropped at once: a call does no more for others.
const DROPPED: usize = 4;

pub(crate) struct Writing<'t> {
    pub(crate) rows: Rows,
    pub(crate) txn: RwTxn<'t>,
    pub(crate) fault: RefCell<Option<Fault>>,
    pub(crate) max_keys: u64,
    /// Whether there is anything to commit.
    pub(crate) changed: bool,
    pub(crate) evicted: u64,
    pub(crate) expired: u64,
}

impl Writing<'_> {
    fn put(&mut self, key: &Key, row: &[u8], now: f64) -> Result<(), Fault> {
        if self.rows.get(&self.txn, key)?.is_none() {
            self.make_room(key, now)?;
        }
        self.rows.put(&mut self.txn, key, row)?;
        self.changed = true;
        Ok(())
    }

    /// Drops what is full by now among those that come after a new state, and where there is no room at least one: the
    /// fullest. Keys are hashes under a secret, so whoever comes after is anybody, and nobody can aim.
    fn make_room(&mut self, key: &Key, now: f64) -> Result<(), Fault> {
        // One row is no state: the settings.
        let over = self.rows.len(&self.txn)?.saturating_sub(self.max_keys);
        let sample = if over > 0 { SAMPLE } else { PASSED };
        let mut full: Vec<Key> = Vec::new();
        let mut fullest: Option<(f64, Key)> = None;
        let after = self.rows.range(&self.txn, &(Excluded(key.as_slice()), Unbounded))?;
        for met in after.chain(self.rows.iter(&self.txn)?).take(sample) {
            let (other, bytes) = met?;
            let Ok(other) = Key::try_from(other) else { continue };
            let (_, full_at) = row::read(&other, bytes).ok_or(Fault::Row)?;
            if full_at <= now && full.len() < DROPPED && !full.contains(&other) {
                full.push(other);
            }
            if fullest.is_none_or(|(least, _)| full_at < least) {
                fullest = Some((full_at, other));
            }
        }
        for key in &full {
            self.rows.delete(&mut self.txn, key)?;
        }
        self.expired += full.len() as u64;
        if let (true, true, Some((_, key))) = (over > 0, full.is_empty(), fullest) {
            self.rows.delete(&mut self.txn, &key)?;
            self.evicted += 1;
        }
        Ok(())
    }
}

impl States for Writing<'_> {
    fn read(&self, digest: Digest) -> Option<State> {
        kept(&self.fault, || state(self.rows, &self.txn, &digest.to_bytes()))
    }

    fn write(&mut self, digest: Digest, state: State, full_at: f64, now: f64) {
        if self.fault.borrow().is_none() {
            let key = digest.to_bytes();
            if let Err(new) = self.put(&key, &row::write(&key, state, full_at), now) {
                self.fault.replace(Some(new));
            }
        }
    }

    fn remove(&mut self, digest: Digest) {
        if self.fault.borrow().is_none() {
            match self.rows.delete(&mut self.txn, &digest.to_bytes()) {
                Ok(was) => self.changed |= was,
                Err(error) => {
                    self.fault.replace(Some(error.into()));
                }
            }
        }
    }
}
