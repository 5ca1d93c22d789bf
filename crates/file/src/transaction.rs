//! States read and written inside one transaction.

use crate::row::{self, Key};
use heed::types::Bytes;
use heed::{Database, RoTxn, RwTxn, WithoutTls};
use std::ops::Bound::{Excluded, Unbounded};
use tidegate_core::{Bucket, Decision, InputError, State};
use tidegate_table::{Call, Change, Digest, Limit, States, Stored, plan};

pub(crate) type Rows = Database<Bytes, Bytes>;

pub(crate) enum Fault {
    Engine(heed::Error),
    /// A row whose hash does not match.
    Row,
    /// A state of a call whose numbers were not checked. A row of it could not be read, nor the folder opened again.
    State(InputError),
}

impl From<heed::Error> for Fault {
    fn from(error: heed::Error) -> Fault {
        Fault::Engine(error)
    }
}

/// Number of rows that are not states: the settings, and [`FRESH_FROM`].
pub(crate) const OWN_ROWS: u64 = 2;
/// The key of the latest instant of the dropped states: see [`tidegate_core::Bucket::absent`].
pub(crate) const FRESH_FROM: &[u8] = b"fresh from";

/// The latest instant of the dropped states, ms since the Unix epoch; 0 if none was dropped.
pub(crate) fn fresh_from(rows: Rows, txn: &RoTxn<'_>) -> Result<f64, Fault> {
    let Some(bytes) = rows.get(txn, FRESH_FROM)? else { return Ok(0.0) };
    let number = row::opened(FRESH_FROM, bytes).and_then(|number| number.try_into().ok());
    number.map(f64::from_le_bytes).ok_or(Fault::Row)
}

fn read(rows: Rows, txn: &RoTxn<'_>, key: &Key) -> Result<Stored, Fault> {
    match rows.get(txn, key)? {
        Some(bytes) => row::read(key, bytes).map(|(state, _)| Stored::Present(state)).ok_or(Fault::Row),
        None => Ok(Stored::Absent { fresh_from: fresh_from(rows, txn)? }),
    }
}

/// A read transaction, which suffices for planning.
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

/// States examined for the fullest if there is no room; if there is room, for full ones.
const SAMPLE: usize = 64;
const SAMPLE_WITH_ROOM: usize = 8;
/// Most states that one call drops.
const DROPPED: usize = 4;

pub(crate) struct Writing<'t> {
    pub(crate) rows: Rows,
    pub(crate) txn: RwTxn<'t>,
    pub(crate) max_keys: u64,
    pub(crate) evicted: u64,
    pub(crate) expired: u64,
}

impl Writing<'_> {
    pub(crate) fn decide(&mut self, limit: &Limit, key: Option<&[u8]>, call: &Call) -> Result<Decision, Fault> {
        let (decision, change) = plan(self, limit, key, call)?;
        if let Some(change) = change {
            self.write(&change, call.now)?;
        }
        Ok(decision)
    }

    pub(crate) fn write(&mut self, change: &Change, now: f64) -> Result<(), Fault> {
        let Change { digest, state, full_at } = *change;
        State::new(state.value(), state.ts()).map_err(Fault::State)?;
        let key = digest.to_bytes();
        let kept_until = match self.rows.get(&self.txn, &key)?.map(|bytes| row::read(&key, bytes)) {
            None => {
                self.make_room(&key, now)?;
                full_at
            }
            // Numbers that fill it sooner, such as an older process's, must not drop it sooner: it would start full by the others.
            Some(Some((before, until))) if !Bucket::is_broken(before, now) => full_at.max(until),
            Some(_) => full_at,
        };
        Ok(self.rows.put(&mut self.txn, &key, &row::write(&key, state, kept_until))?)
    }

    pub(crate) fn remove(&mut self, digest: Digest) -> Result<(), Fault> {
        self.rows.delete(&mut self.txn, &digest.to_bytes())?;
        Ok(())
    }

    /// Drops full states among those that follow a new state in the order of the keys; without room as many as there are too
    /// many, the fullest first. Keys are hashes under a secret, so no caller can choose which state is dropped.
    fn make_room(&mut self, key: &Key, now: f64) -> Result<(), Fault> {
        let over = self.rows.len(&self.txn)?.saturating_sub(self.max_keys + OWN_ROWS - 1);
        let sample = if over > 0 { SAMPLE } else { SAMPLE_WITH_ROOM };
        // The time at which each is full, its key and its `ts`.
        let mut found: Vec<(f64, Key, f64)> = Vec::with_capacity(sample);
        let after = self.rows.range(&self.txn, &(Excluded(key.as_slice()), Unbounded))?;
        for met in after.chain(self.rows.iter(&self.txn)?).take(sample) {
            let (other, bytes) = met?;
            let Ok(other) = Key::try_from(other) else { continue };
            let (state, full_at) = row::read(&other, bytes).ok_or(Fault::Row)?;
            found.push((full_at, other, state.ts()));
        }
        found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Of a few states, the sample has some twice.
        found.dedup_by_key(|(_, key, _)| *key);
        for (at, (full_at, key, ts)) in (0..).zip(found.into_iter().take(DROPPED)) {
            let is_full = Bucket::may_drop(full_at, now);
            if !is_full && at >= over {
                break;
            }
            self.drop_state(&key, if is_full { full_at } else { ts }, now)?;
            *(if is_full { &mut self.expired } else { &mut self.evicted }) += 1;
        }
        Ok(())
    }

    /// Drops a state and stores its instant, if that is the latest.
    fn drop_state(&mut self, key: &Key, at: f64, now: f64) -> Result<(), Fault> {
        self.rows.delete(&mut self.txn, key)?;
        let before = fresh_from(self.rows, &self.txn)?;
        let latest = Bucket::fresh_from(before, at, now);
        if latest != before {
            self.rows.put(&mut self.txn, FRESH_FROM, &row::sealed(FRESH_FROM, &latest.to_le_bytes()))?;
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
