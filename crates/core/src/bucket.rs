//! The bucket: the numbers of one evaluation, and the dispatch on the kind of limit.

use crate::bounds::MAX_NOW_MS;
use crate::kind::Kind;
use crate::number::{ceil, max, min};
use crate::state::State;
use crate::{fixed_window, token_bucket};

/// One hour, in ms. A state whose `ts` is further ahead of the clock than this came from a broken clock and is ignored.
pub const MAX_SKEW_MS: f64 = 3_600_000.0;

/// The bucket of one key, a window's included: a policy with a resolved `start`, for a whole limit or for one shard of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    pub(crate) kind: Kind,
    pub(crate) rate: f64,
    pub(crate) period: f64,
    pub(crate) capacity: f64,
    pub(crate) max_reserved: f64,
    pub(crate) start: f64,
    /// What a request for one token takes: 1, or a shard's part of it.
    pub(crate) one: f64,
    /// `period / rate`: used only for estimates, which the search corrects.
    pub(crate) ms_per_token: f64,
}

impl Bucket {
    /// Most tokens that accumulate.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// The least value that a request may leave, in tokens: 0, or with `reserve` the negative of the most that may be
    /// owed.
    #[inline]
    pub(crate) fn floor(&self, reserve: bool) -> f64 {
        if reserve { -self.max_reserved } else { 0.0 }
    }

    /// `state`, or `None` if it came from a broken clock.
    #[inline]
    pub(crate) fn unless_broken(state: Option<State>, now: f64) -> Option<State> {
        state.filter(|s| !Bucket::is_broken(*s, now))
    }

    /// Whether `state` came from a broken clock: its `ts` is more than [`MAX_SKEW_MS`] ahead of `now`.
    #[must_use]
    #[inline]
    pub fn is_broken(state: State, now: f64) -> bool {
        state.ts - now > MAX_SKEW_MS
    }

    /// The state at `now`, with the tokens refilled since, up to the capacity; also what a client shows between two
    /// responses. `now` is integer ms since the Unix epoch.
    ///
    /// Without a state, or with one from a broken clock, the result is full. A clock that stops or steps back adds
    /// nothing, and `ts` never moves back, so no clock creates tokens.
    #[must_use]
    #[inline]
    pub fn refill(&self, state: Option<State>, now: f64) -> State {
        match (self.kind, Bucket::unless_broken(state, now)) {
            (Kind::TokenBucket, None) => State { value: self.capacity, ts: now },
            (Kind::TokenBucket, Some(s)) => token_bucket::refill(self, s, now),
            (Kind::FixedWindow, None) => State { value: self.capacity, ts: fixed_window::start_of(self, now) },
            (Kind::FixedWindow, Some(s)) => fixed_window::refill(self, s, now),
        }
    }

    /// The state of an absent key in a store that has dropped states. `fresh_from` is the latest instant of the dropped
    /// states, ms: `full_at` of a full one, `ts` of an evicted one.
    ///
    /// If the clock is behind that instant, the key may have had a state then. So it is full as of that instant, and
    /// earns nothing until the clock has passed it again. Otherwise `None`: the key is full as of `now`.
    #[must_use]
    #[inline]
    pub fn absent(&self, fresh_from: f64, now: f64) -> Option<State> {
        let behind = fresh_from > now && fresh_from - now <= MAX_SKEW_MS;
        if behind { Some(self.full_as_of(fresh_from)) } else { None }
    }

    /// The latest instant of a store's dropped states, ms, for [`absent`](Bucket::absent), once the store has dropped a
    /// state of the instant `at` too: the later of the two. An instant of a broken clock, more than [`MAX_SKEW_MS`]
    /// ahead of `now`, does not count.
    ///
    /// ```
    /// use tidegate_core::{Bucket, MAX_SKEW_MS};
    ///
    /// let now = 1.7e12;
    /// assert_eq!(Bucket::fresh_from(now - 60_000.0, now - 1000.0, now), now - 1000.0);
    /// assert_eq!(Bucket::fresh_from(now - 60_000.0, now + 2.0 * MAX_SKEW_MS, now), now - 60_000.0);
    /// ```
    #[must_use]
    #[inline]
    pub fn fresh_from(before: f64, at: f64, now: f64) -> f64 {
        let broken = |at| at - now > MAX_SKEW_MS;
        if !broken(at) && (at > before || broken(before)) { at } else { before }
    }

    /// Not inlined: it is rare, and a copy of `refill` at each caller would slow down the other calls.
    #[cold]
    #[inline(never)]
    fn full_as_of(&self, at: f64) -> State {
        self.refill(None, at)
    }

    /// The first integer ms after `now` at which `refill(state, t).value - count >= floor`; `None` if that is after
    /// [`MAX_NOW_MS`]. It must not hold at `now`.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub(crate) fn least_time(&self, state: State, now: f64, count: f64, floor: f64) -> Option<f64> {
        match self.kind {
            Kind::TokenBucket => token_bucket::least_time(self, state, now, count, floor),
            Kind::FixedWindow => fixed_window::least_time(self, state, now, count, floor),
        }
    }

    /// The first integer ms, from `now` on, at which the state is full; `now` without a state. From then on it is
    /// equivalent to no state, so a store [may drop](Bucket::may_drop) it. At most [`MAX_NOW_MS`].
    #[must_use]
    #[inline]
    pub fn full_at(&self, state: Option<State>, now: f64) -> f64 {
        let Some(known) = Bucket::unless_broken(state, now) else { return now };
        if self.refill(Some(known), now).value >= self.capacity {
            return Bucket::caught_up(known, now);
        }
        self.least_time(known, now, 0.0, self.capacity).unwrap_or(MAX_NOW_MS)
    }

    /// Whether a store may drop a state at `now`, by its [`full_at`](Bucket::full_at). Not at the last ms of the clock, which
    /// is also that of a state that would be full only after it.
    #[must_use]
    #[inline]
    pub fn may_drop(full_at: f64, now: f64) -> bool {
        full_at <= min(now, MAX_NOW_MS - 1.0)
    }

    /// The first integer ms from which a state that is full at `now` is equivalent to no state. A state whose `ts` is
    /// ahead of the clock refills later than no state would, so it stays until its `ts`.
    #[inline]
    pub(crate) fn caught_up(full: State, now: f64) -> f64 {
        min(ceil(max(full.ts, now)), MAX_NOW_MS)
    }
}
