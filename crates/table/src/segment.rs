//! One segment of the table: an array in the order of the hashes, with gaps (ordered linear probing).
//!
//! An entry is at its home, the place that its hash points to, or after it if entries of lesser hash occupy the
//! home. So a search ends at the first greater hash, and an array is rebuilt in one pass, in order, without the states
//! that are full by now. Segments are small, so no rebuild is a noticeable pause.

use crate::call::{Call, Change, Stored};
use crate::limit::Digest;
use crate::packed::Entry;
use alloc::vec::Vec;
use tidegate_core::{Bucket, Decision};

#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    places: Vec<Entry>,
    /// Number of places that are homes; the rest is for entries that are shifted beyond them.
    span: u32,
    used: u32,
    /// The place at which the next search for a state to drop begins.
    cursor: usize,
    /// The latest instant of the dropped states, ms: see [`Bucket::absent`](tidegate_core::Bucket::absent).
    pub(crate) fresh_from: f64,
}

/// States examined for the fullest when there is no room.
const SAMPLE: usize = 128;

/// Highest fill of the span: 7/8.
const FULL: (u32, u32) = (7, 8);
/// Places per 7 entries of a rebuilt array, so that a quarter more fit before the next rebuild.
const ROOM: (u32, u32) = (10, 7);

impl Segment {
    /// The home of a hash with this upper half.
    #[inline]
    fn home(&self, high: u64) -> usize {
        (((high >> 32) * u64::from(self.span)) >> 32) as usize
    }

    /// The place of a digest; as an error, the place at which to insert it.
    #[inline]
    fn find(&self, digest: Digest) -> Result<usize, usize> {
        let home = self.home(digest.high);
        for (offset, entry) in self.places.get(home..).unwrap_or_default().iter().enumerate() {
            if entry.high() < digest.high && !entry.is_vacant() {
                continue;
            }
            if entry.is_vacant() || entry.high() > digest.high {
                return Err(home + offset);
            }
            if entry.digest() == digest {
                return Ok(home + offset);
            }
        }
        Err(self.places.len())
    }

    /// Records the instant of a dropped state.
    fn dropped(&mut self, at: f64, now: f64) {
        self.fresh_from = Bucket::fresh_from(self.fresh_from, at, now);
    }

    #[inline]
    pub(crate) fn read(&self, digest: Digest) -> Stored {
        let found = self.find(digest).ok().and_then(|place| self.places.get(place));
        found.map_or(Stored::Absent { fresh_from: self.fresh_from }, |entry| Stored::Present(entry.state()))
    }

    /// One call on the state of this digest. Returns the entry to insert, if the digest has none to change.
    #[inline(always)]
    pub(crate) fn decide(&mut self, digest: Digest, bucket: &Bucket, call: &Call) -> (Decision, Option<Entry>) {
        let absent = Stored::Absent { fresh_from: self.fresh_from };
        let entry = self.entry(digest);
        let stored = entry.as_ref().map_or(absent, |entry| Stored::Present(entry.state()));
        let outcome = call.apply(bucket, stored.state(bucket, call.now));
        // `reset_at` is the time at which the new state is full.
        let full_at = outcome.decision.reset_at;
        let mut new = None;
        match (outcome.write, entry) {
            (Some(state), Some(entry)) => entry.set(state, full_at),
            (Some(state), None) => new = Some(Entry::new(digest, state, full_at)),
            (None, _) => {}
        }
        (outcome.decision, new)
    }

    /// Changes a state. Returns the entry to insert, if the digest has none to change.
    pub(crate) fn write(&mut self, change: &Change) -> Option<Entry> {
        let Change { digest, state, full_at } = *change;
        let Some(entry) = self.entry(digest) else { return Some(Entry::new(digest, state, full_at)) };
        entry.set(state, full_at);
        None
    }

    /// Removes the state of this digest. Returns whether there was one.
    pub(crate) fn reset(&mut self, digest: Digest) -> bool {
        let Ok(place) = self.find(digest) else { return false };
        self.remove(place);
        true
    }

    #[inline]
    fn entry(&mut self, digest: Digest) -> Option<&mut Entry> {
        let place = self.find(digest).ok()?;
        self.places.get_mut(place)
    }

    #[inline]
    fn get(&self, place: usize) -> Option<&Entry> {
        self.places.get(place).filter(|entry| !entry.is_vacant())
    }

    /// How many states there are, full ones included.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.places.iter().filter(|entry| !entry.is_vacant())
    }

    /// Inserts the entry of a digest that has none, which may drop full states. False if a segment that is not empty needs
    /// more memory than there is.
    pub(crate) fn insert(&mut self, entry: Entry, now: f64) -> bool {
        let mut room = ROOM.0;
        while u64::from(self.used + 1) * u64::from(FULL.1) > u64::from(self.span) * u64::from(FULL.0)
            || !self.put(entry)
        {
            // The segment is full or, rarely, too many entries were shifted beyond its end: rebuild it with more room.
            if !self.rebuild(now, room) {
                return false;
            }
            room += 3;
        }
        self.used += 1;
        true
    }

    /// Writes the entry at its place, and shifts those from there to the next gap; false if there is no gap.
    fn put(&mut self, entry: Entry) -> bool {
        let (Ok(place) | Err(place)) = self.find(entry.digest());
        let Some(tail) = self.places.get_mut(place..) else { return false };
        let Some(gap) = tail.iter().position(Entry::is_vacant) else { return false };
        tail.copy_within(0..gap, 1);
        if let Some(first) = tail.first_mut() {
            *first = entry;
        }
        true
    }

    /// Removes the entry at `place` and closes the gap behind it.
    fn remove(&mut self, place: usize) {
        let mut gap = place;
        while let Some(next) = self.get(gap + 1).copied() {
            if self.home(next.high()) == gap + 1 {
                break;
            }
            if let Some(slot) = self.places.get_mut(gap) {
                *slot = next;
            }
            gap += 1;
        }
        if let Some(slot) = self.places.get_mut(gap) {
            *slot = Entry::default();
            self.used -= 1;
        }
    }

    /// Drops the fullest of a bounded sample of the states, or the first that is full by now. Returns whether that one
    /// was full; `None` if the segment is empty.
    ///
    /// Each sample continues after the previous one, so every state is examined in turn. A debtor is evicted only if
    /// no state of the sample is full before it, as in a flood of keys that are full as late.
    pub(crate) fn drop_fullest(&mut self, now: f64) -> Option<bool> {
        let mut best: Option<(f64, usize)> = None;
        let mut met = 0;
        for _ in 0..self.places.len() {
            if self.cursor >= self.places.len() {
                self.cursor = 0;
            }
            if let Some(entry) = self.get(self.cursor) {
                let full_at = entry.full_at();
                if best.is_none_or(|(least, _)| full_at < least) {
                    best = Some((full_at, self.cursor));
                }
                met += 1;
                if Bucket::may_drop(full_at, now) || met == SAMPLE {
                    break;
                }
            }
            self.cursor += 1;
        }
        let (full_at, place) = best?;
        let was_full = Bucket::may_drop(full_at, now);
        let ts = self.get(place)?.state().ts();
        self.dropped(if was_full { full_at } else { ts }, now);
        self.remove(place);
        Some(was_full)
    }

    /// Rebuilds the array, sized for the states that are not full yet. False without memory for the array, unless the segment
    /// is empty: then the allocation ends the program, since no state can be dropped for it.
    fn rebuild(&mut self, now: f64, room: u32) -> bool {
        let is_live = |entry: &Entry| !entry.is_vacant() && !Bucket::may_drop(entry.full_at(), now);
        let mut kept = 0;
        let mut fresh_from = f64::NEG_INFINITY;
        for entry in &self.places {
            kept += u32::from(is_live(entry));
            if !is_live(entry) && !entry.is_vacant() && entry.full_at() > fresh_from {
                fresh_from = entry.full_at();
            }
        }
        let span = ((kept + 1) * room / ROOM.1).max(6);
        let length = span as usize + span as usize / 32 + 10;
        let mut places = Vec::new();
        let reserved = places.try_reserve_exact(length).is_ok() && has_spare_memory();
        if !reserved && self.used > 0 {
            return false;
        }
        self.dropped(fresh_from, now);
        let mut rebuilt = Segment { places, span, used: kept, cursor: 0, fresh_from: self.fresh_from };
        for entry in &self.places {
            if is_live(entry) {
                let at = rebuilt.home(entry.high()).max(rebuilt.places.len());
                rebuilt.places.resize(at, Entry::default());
                rebuilt.places.push(*entry);
            }
        }
        // With all that was allocated: an array that grew here would have no place behind its last state for the next one.
        rebuilt.places.resize(length.max(rebuilt.places.capacity()), Entry::default());
        *self = rebuilt;
        true
    }
}

/// Whether there is memory besides that of the states: WebAssembly does not recover from an allocation that fails, and the
/// other calls of the module allocate too. `small` has no room for this.
#[cfg(all(target_arch = "wasm32", not(feature = "small")))]
fn has_spare_memory() -> bool {
    let mut spare: Vec<u8> = Vec::new();
    let reserved = spare.try_reserve_exact(SPARE).is_ok();
    // Otherwise the compiler leaves the allocation out, as one that is not used.
    core::hint::black_box(&spare);
    reserved
}

/// Bytes.
#[cfg(all(target_arch = "wasm32", not(feature = "small")))]
const SPARE: usize = 1 << 20;

#[cfg(not(all(target_arch = "wasm32", not(feature = "small"))))]
const fn has_spare_memory() -> bool {
    true
}

#[cfg(test)]
mod tests;
