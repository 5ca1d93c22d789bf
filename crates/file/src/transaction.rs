//! States read and written inside one transaction.

use crate::row::{self, Key};
use heed::types::Bytes;
use heed::{Database, RoTxn, RwTxn, WithoutTls};
use std::ops::Bound::{Excluded, Unbounded};
use tidegate_core::{Decision, MAX_SKEW_MS};
use tidegate_table::{Call, Change, Digest, Limit, States, Stored, plan};

pub(crate) type Rows = Database<Bytes, Bytes>;

/// Why a transaction failed.
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

/// Rows that are no states: the settings, and [`FRESH_FROM`].
pub(crate) const OWN_ROWS: u64 = 2;
/// Where the latest instant of the states that were dropped is among them: see [`tidegate_core::Rule::absent`].
pub(crate) const FRESH_FROM: &[u8] = b"fresh from";

/// The latest instant of the states that were dropped, ms since the Unix epoch; 0 where none was.
pub(crate) fn fresh_from(rows: Rows, txn: &RoTxn<'_>) -> Result<f64, Fault> {
    let Some(bytes) = rows.get(txn, FRESH_FROM)? else { return Ok(0.0) };
    bytes.try_into().map(f64::from_le_bytes).map_err(|_| Fault::Row)
}

fn read(rows: Rows, txn: &RoTxn<'_>, key: &Key) -> Result<Stored, Fault> {
    match rows.get(txn, key)? {
        Some(bytes) => row::read(key, bytes).map(|(state, _)| Stored::Present(state)).ok_or(Fault::Row),
        None => Ok(Stored::Absent { fresh_from: fresh_from(rows, txn)? }),
    }
}

/// Only reads: planning needs no more.
pub(crate) struct Reading<'t> {
    pub(crate) rows: Rows,
    pub(crate) txn: RoTxn<'t, WithoutTls>,
}

impl States for Reading<'_> {
    type Error = Fault;

    fn read(&self, digest: Digest) -> Result<Stored, Fault> {
        read(self.rows, &self.txn, &digest.to_bytes())
    }
}

/// States that were looked at for one to drop, where there is no room; where there is, for any that are full.
const SAMPLE: usize = 64;
const PASSED: usize = 8;
/// At most so many are dropped at once: a call does no more for others.
const DROPPED: usize = 4;

pub(crate) struct Writing<'t> {
    pub(crate) rows: Rows,
    pub(crate) txn: RwTxn<'t>,
    pub(crate) max_keys: u64,
    /// Whether there is anything to commit.
    pub(crate) changed: bool,
    pub(crate) evicted: u64,
    pub(crate) expired: u64,
}

impl Writing<'_> {
    /// One call, its change written.
    pub(crate) fn decide(&mut self, limit: &Limit, key: Option<&[u8]>, call: &Call) -> Result<Decision, Fault> {
        let (decision, change) = plan(self, limit, key, call)?;
        if let Some(change) = change {
            self.write(&change, call.now)?;
        }
        Ok(decision)
    }

    pub(crate) fn write(&mut self, change: &Change, now: f64) -> Result<(), Fault> {
        let key = change.digest.to_bytes();
        self.put(&key, &row::write(&key, change.state, change.full_at), now)
    }

    pub(crate) fn remove(&mut self, digest: Digest) -> Result<(), Fault> {
        self.changed |= self.rows.delete(&mut self.txn, &digest.to_bytes())?;
        Ok(())
    }

    fn put(&mut self, key: &Key, row: &[u8], now: f64) -> Result<(), Fault> {
        if self.rows.get(&self.txn, key)?.is_none() {
            self.make_room(key, now)?;
        }
        self.rows.put(&mut self.txn, key, row)?;
        self.changed = true;
        Ok(())
    }

    /// Drops what is full by now among those that come after a new state, and where there is no room at least one: the
    /// fullest. Keys are hashes under a secret, so no caller can choose which state that is.
    fn make_room(&mut self, key: &Key, now: f64) -> Result<(), Fault> {
        let over = self.rows.len(&self.txn)?.saturating_sub(self.max_keys + OWN_ROWS - 1);
        let sample = if over > 0 { SAMPLE } else { PASSED };
        let mut full: Vec<(Key, f64)> = Vec::new();
        let mut fullest: Option<(f64, Key, f64)> = None;
        let after = self.rows.range(&self.txn, &(Excluded(key.as_slice()), Unbounded))?;
        for met in after.chain(self.rows.iter(&self.txn)?).take(sample) {
            let (other, bytes) = met?;
            let Ok(other) = Key::try_from(other) else { continue };
            let (state, full_at) = row::read(&other, bytes).ok_or(Fault::Row)?;
            if full_at <= now && full.len() < DROPPED && !full.iter().any(|(key, _)| *key == other) {
                full.push((other, full_at));
            }
            if fullest.is_none_or(|(least, _, _)| full_at < least) {
                fullest = Some((full_at, other, state.ts()));
            }
        }
        for (key, full_at) in &full {
            self.drop_state(key, *full_at, now)?;
        }
        self.expired += full.len() as u64;
        if let (true, true, Some((_, key, ts))) = (over > 0, full.is_empty(), fullest) {
            self.drop_state(&key, ts, now)?;
            self.evicted += 1;
        }
        Ok(())
    }

    /// Drops a state, and notes its instant; an instant of a broken clock is ignored, and replaced.
    fn drop_state(&mut self, key: &Key, at: f64, now: f64) -> Result<(), Fault> {
        self.rows.delete(&mut self.txn, key)?;
        let broken = |at| at - now > MAX_SKEW_MS;
        let before = fresh_from(self.rows, &self.txn)?;
        if !broken(at) && (at > before || broken(before)) {
            self.rows.put(&mut self.txn, FRESH_FROM, &at.to_le_bytes())?;
        }
        Ok(())
    }
}

impl States for Writing<'_> {
    type Error = Fault;

    fn read(&self, digest: Digest) -> Result<Stored, Fault> {
        read(self.rows, &self.txn, &digest.to_bytes())
    }
}
