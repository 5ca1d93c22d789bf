//! The numbers of one evaluation, and the choice between the two kinds.

use crate::bounds::CLOCK_END;
use crate::number::{ceil, max, min};
use crate::policy::Kind;
use crate::state::State;
use crate::{fixed_window, token_bucket};

/// A state stamped further ahead than this came from a broken clock and is taken as none: one hour, in ms.
pub const MAX_SKEW_MS: f64 = 3_600_000.0;
/// The clock's end, 2^52 ms: no instant that is returned is later.
pub const MAX_NOW_MS: f64 = CLOCK_END;

/// A policy with its `start` settled: of a whole limit, or of one shard of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    pub(crate) kind: Kind,
    pub(crate) rate: f64,
    pub(crate) period: f64,
    pub(crate) capacity: f64,
    pub(crate) max_reserved: f64,
    pub(crate) start: f64,
    /// `period / rate`: only for estimates, which the search corrects.
    pub(crate) ms_per_token: f64,
}

impl Rule {
    /// Most tokens that accumulate.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// What a request may leave behind at the least: 0, or the debt that a reservation may reach.
    #[inline]
    pub(crate) fn floor(&self, reserve: bool) -> f64 {
        if reserve { -self.max_reserved } else { 0.0 }
    }

    /// `state`, unless there is none or its clock was broken.
    #[inline]
    pub(crate) fn known(state: Option<State>, now: f64) -> Option<State> {
        state.filter(|s| !Rule::is_broken(*s, now))
    }

    /// Whether `state` was stamped by a clock that is wrong: more than [`MAX_SKEW_MS`] ahead of `now`.
    #[must_use]
    #[inline]
    pub fn is_broken(state: State, now: f64) -> bool {
        state.ts - now > MAX_SKEW_MS
    }

    /// The state at `now`: what has come back since is added, and the value capped. `now` is whole ms.
    ///
    /// No state, or one from a broken clock: full. A clock that stops or steps back adds nothing, and `ts` never
    /// moves back, so no clock mints tokens.
    #[must_use]
    #[inline]
    pub fn refill(&self, state: Option<State>, now: f64) -> State {
        match (self.kind, Rule::known(state, now)) {
            (Kind::TokenBucket, None) => State { value: self.capacity, ts: now },
            (Kind::TokenBucket, Some(s)) => token_bucket::refill(self, s, now),
            (Kind::FixedWindow, None) => State { value: self.capacity, ts: fixed_window::start_of(self, now) },
            (Kind::FixedWindow, Some(s)) => fixed_window::refill(self, s, now),
        }
    }

    /// The state of a key that a store keeps none for, where the store has dropped states: `fresh_from` is the latest
    /// instant of those, `full_at` of one that was full, else `ts`.
    ///
    /// Where the clock is behind that instant, the key may have had a state then, so it is full as of then and earns
    /// nothing until the clock has passed it again. Else there is no state: a fresh key is full as of `now`.
    #[must_use]
    #[inline]
    pub fn absent(&self, fresh_from: f64, now: f64) -> Option<State> {
        let behind = fresh_from > now && fresh_from - now <= MAX_SKEW_MS;
        if behind { Some(self.full_as_of(fresh_from)) } else { None }
    }

    /// Out of line: it is rare, and a copy of `refill` at each caller would cost the calls that do without.
    #[cold]
    #[inline(never)]
    fn full_as_of(&self, at: f64) -> State {
        self.refill(None, at)
    }

    /// `refill` for display: what a client shows between two answers.
    #[must_use]
    #[inline]
    pub fn project(&self, state: Option<State>, now: f64) -> State {
        self.refill(state, now)
    }

    /// Least whole ms after `now` (where the answer is no) at which `refill(state, t).value - count >= floor`, or
    /// `None` where the clock ends before.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub(crate) fn least_time(&self, state: State, now: f64, count: f64, floor: f64) -> Option<f64> {
        match self.kind {
            Kind::TokenBucket => token_bucket::least_time(self, state, now, count, floor),
            Kind::FixedWindow => fixed_window::least_time(self, state, now, count, floor),
        }
    }

    /// Least whole ms, from `now` on, at which the state is full. From then on it is indistinguishable from none, so
    /// a store drops it then. Without a state: `now`. Not after the clock's end, [`MAX_NOW_MS`].
    #[must_use]
    #[inline]
    pub fn full_at(&self, state: Option<State>, now: f64) -> f64 {
        let Some(known) = Rule::known(state, now) else { return now };
        if self.refill(Some(known), now).value >= self.capacity {
            return Rule::caught_up(known, now);
        }
        self.least_time(known, now, 0.0, self.capacity).unwrap_or(MAX_NOW_MS)
    }

    /// Least whole ms from which on a state that is full at `now` is as good as none. One stamped ahead of the clock
    /// refills later than none would, so it stays until its ts.
    #[inline]
    pub(crate) fn caught_up(full: State, now: f64) -> f64 {
        min(ceil(max(full.ts, now)), MAX_NOW_MS)
    }
}
