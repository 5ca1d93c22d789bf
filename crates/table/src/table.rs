//! The table of one thread.

use crate::call::{All, Call, Change, Member, States, Stored, plan_all};
use crate::limit::{Digest, Limit};
use crate::packed::Entry;
use crate::segment::Segment;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use tidegate_core::{Decision, State};

/// Keys of one segment when the table is full: small enough to rebuild in about 20 µs.
pub(crate) const SEGMENT_KEYS: usize = 1024;

/// Counts of the states that a table holds and has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// States held now.
    pub keys: usize,
    /// The most it may hold.
    pub max_keys: usize,
    /// States evicted for room before they were full: each granted its key at most one more `capacity`.
    pub evicted: u64,
    /// Full states dropped; a dropped full state changes no decision.
    pub expired: u64,
    /// Memory of the places for states, used and free, in bytes.
    pub bytes: usize,
}

/// States by identity, for one thread. See the [crate's documentation](crate).
pub struct Table {
    pub(crate) segments: Vec<Segment>,
    secret: [u64; 2],
    max_keys: usize,
    pub(crate) keys: usize,
    evicted: u64,
    expired: u64,
}

pub(crate) fn segments_for(max_keys: usize) -> usize {
    (max_keys / SEGMENT_KEYS).next_power_of_two().clamp(1, 1 << 20)
}

impl Table {
    /// An empty table for at most `max_keys` states (at least 1), hashing under `secret`, 128 random bits.
    #[must_use]
    pub fn new(max_keys: usize, secret: [u64; 2]) -> Table {
        let max_keys = max_keys.max(1);
        let mut segments = Vec::new();
        segments.resize_with(segments_for(max_keys), Segment::default);
        Table { segments, secret, max_keys, keys: 0, evicted: 0, expired: 0 }
    }

    /// The secret that limits on this table hash under.
    #[must_use]
    pub fn secret(&self) -> [u64; 2] {
        self.secret
    }

    /// Counts of the states held and dropped.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let places: usize = self.segments.iter().map(Segment::places).sum();
        Stats {
            keys: self.keys,
            max_keys: self.max_keys,
            evicted: self.evicted,
            expired: self.expired,
            bytes: places * size_of::<Entry>() + self.segments.len() * size_of::<Segment>(),
        }
    }

    #[inline]
    pub(crate) fn segment_of(&self, digest: Digest) -> usize {
        digest.low as usize & (self.segments.len() - 1)
    }

    /// Inserts the state of a digest that has none.
    #[cold]
    pub(crate) fn insert(&mut self, entry: Entry, now: f64) {
        let at = self.segment_of(entry.digest());
        let mut is_full = self.keys >= self.max_keys;
        loop {
            if is_full {
                self.make_room(at, now);
            }
            let Some(segment) = self.segments.get_mut(at) else { return };
            let before = segment.used();
            let inserted = segment.insert(entry, now);
            let dropped = before + u32::from(inserted) - segment.used();
            self.expired += u64::from(dropped);
            self.keys = self.keys + usize::from(inserted) - dropped as usize;
            if inserted {
                return;
            }
            // There is no memory for a larger segment.
            is_full = true;
        }
    }

    /// Drops the fullest state of the segment that a new one is for; if that is empty, of the next segment. So every
    /// segment of a full table keeps its size, and with it a choice of states to drop.
    fn make_room(&mut self, segment: usize, now: f64) {
        for next in 0..self.segments.len() {
            let at = (segment + next) & (self.segments.len() - 1);
            let Some(was_full) = self.segments.get_mut(at).and_then(|segment| segment.drop_fullest(now)) else {
                continue;
            };
            if was_full {
                self.expired += 1;
            } else {
                self.evicted += 1;
            }
            self.keys -= 1;
            return;
        }
    }

    /// One call on one limit and key.
    #[inline]
    pub fn decide(&mut self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Decision {
        self.decide_digest(limit, key, limit.digest(key), call)
    }

    /// As [`decide`](Table::decide), for a key whose digest the caller has kept.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub fn decide_digest(&mut self, limit: &Limit, key: Option<&[u8]>, digest: Digest, call: Call) -> Decision {
        let computed;
        let bucket = match limit.common_bucket() {
            Some(bucket) => bucket,
            None => {
                computed = limit.bucket(key);
                &computed
            }
        };
        let at = self.segment_of(digest);
        let Some(segment) = self.segments.get_mut(at) else {
            return bucket.check(None, call.now, call.count, call.reserve);
        };
        let (decision, new) = segment.decide(digest, bucket, &call);
        if let Some(entry) = new {
            self.insert(entry, call.now);
        }
        decision
    }

    /// Takes from all members or from none; without `takes`, only decides. `now` is integer ms since the Unix epoch
    /// ([`check_now`](tidegate_core::check_now)).
    pub fn take_all(&mut self, members: &[Member], now: f64, takes: bool) -> All {
        let Ok((all, changes)) = plan_all(self, members, now);
        if takes {
            for change in &changes {
                self.write(change, now);
            }
        }
        all
    }

    /// The state of the key at `now`, ms since the Unix epoch.
    #[must_use]
    pub fn value(&self, limit: &Limit, key: Option<&[u8]>, now: f64) -> State {
        let bucket = limit.bucket(key);
        let Ok(stored) = self.read(limit.digest(key));
        bucket.refill(stored.state(&bucket, now), now)
    }

    /// Removes the state: the key is full again.
    pub fn reset(&mut self, limit: &Limit, key: Option<&[u8]>) {
        let digest = limit.digest(key);
        let at = self.segment_of(digest);
        if self.segments.get_mut(at).is_some_and(|segment| segment.reset(digest)) {
            self.keys -= 1;
        }
    }

    fn write(&mut self, change: &Change, now: f64) {
        let at = self.segment_of(change.digest);
        if let Some(entry) = self.segments.get_mut(at).and_then(|segment| segment.write(change)) {
            self.insert(entry, now);
        }
    }
}

/// Without the secret and the states: logs contain it.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl States for Table {
    type Error = Infallible;

    #[inline]
    fn read(&self, digest: Digest) -> Result<Stored, Infallible> {
        let segment = self.segments.get(self.segment_of(digest));
        Ok(segment.map_or(Stored::Absent { fresh_from: 0.0 }, |segment| segment.read(digest)))
    }
}

#[cfg(test)]
mod tests;
