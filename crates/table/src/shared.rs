//! The table of a whole process: the same segments, each behind its own lock.

use crate::call::{Call, Member};
use crate::limit::{Digest, Limit};
use crate::packed::Entry;
use crate::segment::{Place, Segment};
use crate::states::{Read, Stored, Write, carry_out, plan, plan_all, reset, value};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Relaxed};
use crate::table::{Stats, segments_for};
use alloc::vec::Vec;
use core::convert::Infallible;
use std::sync::PoisonError;
use tidegate_core::{Decision, State};

/// A [`Table`](crate::Table) that all threads share. A call on one key locks one segment of the table; a call on
/// several locks theirs in one order, so no two calls wait for each other. While threads add states at the same moment
/// there may be as many more than `max_keys` as they are about to add.
#[derive(Debug)]
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

    /// What its limits hash under.
    #[must_use]
    pub fn secret(&self) -> [u64; 2] {
        self.secret
    }

    /// What it holds and has dropped.
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
        // A segment is consistent between any two statements that could panic, and none can: so poison says nothing.
        self.segments[segment].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the segments of these digests, in the order of their numbers.
    fn lock_all(&self, digests: impl Iterator<Item = Digest>) -> Locked<'_> {
        let mut numbers: Vec<usize> = digests.map(|digest| self.segment_of(digest)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Locked { table: self, segments: numbers.into_iter().map(|i| (i, self.lock(i))).collect() }
    }

    /// Puts a new state into its segment, which is locked; where the table is full, the fullest one there goes.
    fn insert(&self, segment: &mut Segment, digest: Digest, entry: Entry, now: f64) {
        if self.keys.load(Relaxed) >= self.max_keys
            && let Some(was_full) = segment.drop_fullest(now)
        {
            self.keys.fetch_sub(1, Relaxed);
            if was_full { &self.expired } else { &self.evicted }.fetch_add(1, Relaxed);
        }
        let (Place::Found(place) | Place::Vacant(place)) = segment.find(digest);
        let dropped = segment.insert(place, entry, now);
        self.expired.fetch_add(u64::from(dropped), Relaxed);
        self.keys.fetch_add(1, Relaxed);
        self.keys.fetch_sub(dropped as usize, Relaxed);
    }

    /// One call on one limit and key.
    pub fn decide(&self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Decision {
        let digest = limit.digest(key);
        if limit.policy().shards() > 1 {
            let mut locked = self.lock_all((0..limit.policy().shards()).map(|shard| limit.shard(digest, shard)));
            let mut changes = Vec::new();
            let Ok(decision) = plan(&locked, limit, key, digest, &call, &mut changes);
            let Ok(()) = carry_out(&mut locked, &changes, call.now);
            return decision;
        }
        let rule = limit.rule(key);
        let mut segment = self.lock(self.segment_of(digest));
        let absent = Stored::Absent { fresh_from: segment.fresh_from() };
        let entry = match segment.find(digest) {
            Place::Found(place) => segment.get_mut(place),
            Place::Vacant(_) => None,
        };
        let stored = entry.as_ref().map_or(absent, |entry| Stored::Present(entry.state()));
        let outcome = call.apply(&rule, stored.state(&rule, call.now));
        if let Some(state) = outcome.write {
            let full_at = outcome.decision.reset_at;
            match entry {
                Some(entry) => entry.set(state, full_at),
                None => self.insert(&mut segment, digest, Entry::new(digest, state, full_at), call.now),
            }
        }
        outcome.decision
    }

    /// Takes from all members or from none; see [`Table::take_all`](crate::Table::take_all).
    pub fn take_all(&self, members: &[Member<'_>], now: f64, takes: bool) -> (bool, Option<f64>, Vec<Decision>) {
        let mut locked = self.lock_all(members.iter().flat_map(|member| {
            let digest = member.digest();
            (0..member.limit.policy().shards()).map(move |shard| member.limit.shard(digest, shard))
        }));
        let mut changes = Vec::new();
        let Ok(all) = plan_all(&locked, members, now, takes, &mut changes);
        let Ok(()) = carry_out(&mut locked, &changes, now);
        all
    }

    /// The limit's two numbers at `now`, of all its shards together.
    #[must_use]
    pub fn value(&self, limit: &Limit, key: Option<&[u8]>, now: f64) -> State {
        let Ok(state) = value(&self.lock_limit(limit, key), limit, key, now);
        state
    }

    /// Forgets the limit: the next call finds it full.
    pub fn reset(&self, limit: &Limit, key: Option<&[u8]>) {
        let Ok(()) = reset(&mut self.lock_limit(limit, key), limit, key);
    }

    fn lock_limit(&self, limit: &Limit, key: Option<&[u8]>) -> Locked<'_> {
        let digest = limit.digest(key);
        self.lock_all((0..limit.policy().shards()).map(|shard| limit.shard(digest, shard)))
    }
}

impl Locked<'_> {
    fn at(&self, digest: Digest) -> Option<usize> {
        let number = self.table.segment_of(digest);
        self.segments.binary_search_by_key(&number, |(number, _)| *number).ok()
    }
}

impl Read for Locked<'_> {
    type Error = Infallible;

    fn read(&self, digest: Digest) -> Result<Stored, Infallible> {
        let segment = self.at(digest).and_then(|i| self.segments.get(i));
        Ok(segment.map_or(Stored::Absent { fresh_from: 0.0 }, |(_, segment)| segment.read(digest)))
    }
}

impl Write for Locked<'_> {
    fn write(&mut self, digest: Digest, state: State, full_at: f64, now: f64) -> Result<(), Infallible> {
        let Some((_, segment)) = self.at(digest).and_then(|i| self.segments.get_mut(i)) else { return Ok(()) };
        if let Place::Found(place) = segment.find(digest) {
            if let Some(entry) = segment.get_mut(place) {
                entry.set(state, full_at);
            }
        } else {
            self.table.insert(segment, digest, Entry::new(digest, state, full_at), now);
        }
        Ok(())
    }

    fn remove(&mut self, digest: Digest) -> Result<(), Infallible> {
        let Some((_, segment)) = self.at(digest).and_then(|i| self.segments.get_mut(i)) else { return Ok(()) };
        if let Place::Found(place) = segment.find(digest) {
            segment.remove(place);
            self.table.keys.fetch_sub(1, Relaxed);
        }
        Ok(())
    }
}
