//! The table that all threads of a process share: the same segments, each behind its own lock.

use crate::call::{All, Call, Change, Member, States, Stored, plan_all};
use crate::limit::{Digest, Limit};
use crate::packed::Entry;
use crate::segment::Segment;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Relaxed};
use crate::table::{Stats, segments_for};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use std::sync::PoisonError;
use tidegate_core::{Decision, State};

/// A [`Table`](crate::Table) that all threads share. A call on one key locks one segment of the table; a call on
/// several keys locks their segments in ascending order, so there is no deadlock. If the segment of a
/// new state is empty, none is dropped for it: a table of many segments may exceed `max_keys` by one for each.
pub struct SharedTable {
    segments: Vec<Mutex<Segment>>,
    secret: [u64; 2],
    max_keys: usize,
    keys: AtomicUsize,
    evicted: AtomicU64,
    expired: AtomicU64,
}

/// The segments that one call has locked.
struct Locked<'a> {
    table: &'a SharedTable,
    /// In ascending order of their number.
    segments: Vec<(usize, MutexGuard<'a, Segment>)>,
}

impl SharedTable {
    /// An empty table for at most `max_keys` states, hashing under `secret`, 128 random bits.
    #[must_use]
    pub fn new(max_keys: usize, secret: [u64; 2]) -> SharedTable {
        let max_keys = max_keys.max(1);
        SharedTable {
            segments: (0..segments_for(max_keys)).map(|_| Mutex::default()).collect(),
            secret,
            max_keys,
            keys: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// The secret that limits on this table hash under.
    #[must_use]
    pub fn secret(&self) -> [u64; 2] {
        self.secret
    }

    /// Counts of the states held and dropped.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let places: usize = (0..self.segments.len()).map(|i| self.lock(i).places()).sum();
        Stats {
            keys: self.keys.load(Relaxed),
            max_keys: self.max_keys,
            evicted: self.evicted.load(Relaxed),
            expired: self.expired.load(Relaxed),
            bytes: places * size_of::<Entry>() + self.segments.len() * size_of::<Mutex<Segment>>(),
        }
    }

    fn segment_of(&self, digest: Digest) -> usize {
        digest.low as usize & (self.segments.len() - 1)
    }

    #[inline]
    fn lock(&self, segment: usize) -> MutexGuard<'_, Segment> {
        // No statement that changes a segment can panic, so a poisoned lock is still consistent.
        self.segments[segment].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the members' segments, in the order of their numbers.
    fn lock_all(&self, members: &[Member]) -> Locked<'_> {
        let mut numbers: Vec<usize> = members.iter().map(|member| self.segment_of(member.digest)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Locked { table: self, segments: numbers.into_iter().map(|i| (i, self.lock(i))).collect() }
    }

    /// Puts a new state into its segment, which is locked; if the table is full, the segment's fullest one is
    /// dropped.
    fn insert(&self, segment: &mut Segment, entry: Entry, now: f64) {
        // Counted first: of threads that add states concurrently, each sees those of the others.
        let mut is_full = self.keys.fetch_add(1, Relaxed) >= self.max_keys;
        loop {
            if is_full && let Some(was_full) = segment.drop_fullest(now) {
                self.keys.fetch_sub(1, Relaxed);
                if was_full { &self.expired } else { &self.evicted }.fetch_add(1, Relaxed);
            }
            let before = segment.used();
            let inserted = segment.insert(entry, now);
            let dropped = before + u32::from(inserted) - segment.used();
            self.expired.fetch_add(u64::from(dropped), Relaxed);
            self.keys.fetch_sub(dropped as usize, Relaxed);
            if inserted {
                return;
            }
            // There is no memory for a larger segment.
            is_full = true;
        }
    }

    /// One call on one limit and key.
    pub fn decide(&self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Decision {
        let (digest, bucket) = (limit.digest(key), limit.bucket(key));
        let mut segment = self.lock(self.segment_of(digest));
        let (decision, new) = segment.decide(digest, &bucket, &call);
        if let Some(entry) = new {
            self.insert(&mut segment, entry, call.now);
        }
        decision
    }

    /// Takes from all members or from none; without `takes`, only decides. `now` is integer ms since the Unix epoch
    /// ([`check_now`](tidegate_core::check_now)).
    pub fn take_all(&self, members: &[Member], now: f64, takes: bool) -> All {
        let mut locked = self.lock_all(members);
        let Ok((all, changes)) = plan_all(&locked, members, now);
        if takes {
            for change in &changes {
                locked.write(change, now);
            }
        }
        all
    }

    /// The state of the key at `now`, ms since the Unix epoch.
    #[must_use]
    pub fn value(&self, limit: &Limit, key: Option<&[u8]>, now: f64) -> State {
        let (digest, bucket) = (limit.digest(key), limit.bucket(key));
        let stored = self.lock(self.segment_of(digest)).read(digest);
        bucket.refill(stored.state(&bucket, now), now)
    }

    /// Removes the state: the key is full again.
    pub fn reset(&self, limit: &Limit, key: Option<&[u8]>) {
        let digest = limit.digest(key);
        let mut segment = self.lock(self.segment_of(digest));
        if segment.reset(digest) {
            self.keys.fetch_sub(1, Relaxed);
        }
    }
}

/// Without the secret and the states: logs contain it.
impl fmt::Debug for SharedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTable").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Locked<'_> {
    fn at(&self, digest: Digest) -> Option<usize> {
        let number = self.table.segment_of(digest);
        self.segments.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    fn write(&mut self, change: &Change, now: f64) {
        let Some((_, segment)) = self.at(change.digest).and_then(|i| self.segments.get_mut(i)) else { return };
        if let Some(entry) = segment.write(change) {
            self.table.insert(segment, entry, now);
        }
    }
}

impl States for Locked<'_> {
    type Error = Infallible;

    fn read(&self, digest: Digest) -> Result<Stored, Infallible> {
        let segment = self.at(digest).and_then(|i| self.segments.get(i));
        Ok(segment.map_or(Stored::Absent { fresh_from: 0.0 }, |(_, segment)| segment.read(digest)))
    }
}

#[cfg(test)]
mod tests;
