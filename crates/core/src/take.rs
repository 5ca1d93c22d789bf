//! Take, check, give and charge. Requests are granted or denied only here.

use crate::bounds::MAX_NOW_MS;
use crate::bucket::Bucket;
use crate::decision::{Decision, Outcome, Reason};
use crate::number::min;
use crate::state::State;

impl Bucket {
    /// Whether `count` can never be granted: it is more than the limit ever holds or, with `reserve`, ever lends. This
    /// needs no state.
    #[must_use]
    #[inline]
    pub fn exceeds_capacity(&self, count: f64, reserve: bool) -> bool {
        self.capacity - count < self.floor(reserve)
    }

    /// Takes `count` tokens at `now`, or denies and returns when they can be taken.
    ///
    /// `count` is 0 to 2^40 ([`check_count`](crate::check_count)) and `now` integer ms
    /// ([`check_now`](crate::check_now)). With `reserve`, tokens may be owed, up to the policy's `maxReserved`.
    #[must_use]
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub fn take(&self, state: Option<State>, now: f64, count: f64, reserve: bool) -> Outcome {
        if self.exceeds_capacity(count, reserve) {
            return Outcome { decision: Decision::never(now), write: None };
        }
        let refilled = self.refill(state, now);
        let floor = self.floor(reserve);
        let value = refilled.value - count;
        if value < floor {
            return self.deny(state, refilled, now, self.later(state, now, count, floor));
        }
        let after = State { value, ts: refilled.ts };
        let retry_at = if value >= 0.0 { None } else { self.least_time(after, now, 0.0, 0.0) };
        if value < 0.0 && retry_at.is_none() {
            return self.deny(state, refilled, now, None);
        }
        let write = (count > 0.0).then_some(after);
        Outcome { decision: self.granted(after, write.or(state), now, retry_at, value < 0.0), write }
    }

    /// What [`take`](Bucket::take) would return, with nothing to write.
    #[must_use]
    #[inline]
    pub fn check(&self, state: Option<State>, now: f64, count: f64, reserve: bool) -> Decision {
        self.take(state, now, count, reserve).decision
    }

    /// Gives `count` unused tokens back, up to the capacity. Without a state the key is full already.
    #[must_use]
    pub fn give(&self, state: Option<State>, now: f64, count: f64) -> Outcome {
        let refilled = self.refill(state, now);
        let value = min(refilled.value + count, self.capacity);
        self.settle(
            state,
            State { value, ts: refilled.ts },
            now,
            count > 0.0 && Bucket::unless_broken(state, now).is_some(),
        )
    }

    /// Takes `count` tokens that are already spent: it always succeeds, may go below any floor, and `retry_at` is when
    /// the debt is paid.
    #[must_use]
    pub fn charge(&self, state: Option<State>, now: f64, count: f64) -> Outcome {
        let refilled = self.refill(state, now);
        self.settle(state, State { value: refilled.value - count, ts: refilled.ts }, now, count > 0.0)
    }

    fn settle(&self, state: Option<State>, after: State, now: f64, writes: bool) -> Outcome {
        let retry_at = if after.value >= 0.0 { None } else { self.least_time(after, now, 0.0, 0.0) };
        let write = writes.then_some(after);
        Outcome { decision: self.granted(after, write.or(state), now, retry_at, false), write }
    }

    #[inline]
    fn later(&self, state: Option<State>, now: f64, count: f64, floor: f64) -> Option<f64> {
        // A fresh key is full, and a count that a full key cannot grant exceeds the capacity. So there is a state here.
        self.least_time(Bucket::unless_broken(state, now)?, now, count, floor)
    }

    #[inline]
    fn deny(&self, state: Option<State>, refilled: State, now: f64, retry_at: Option<f64>) -> Outcome {
        let decision = Decision {
            ok: false,
            value: refilled.value,
            ts: refilled.ts,
            retry_at,
            reset_at: self.full_at(state, now),
            reserved: false,
            reason: if retry_at.is_none() { Some(Reason::ExceedsClock) } else { None },
        };
        Outcome { decision, write: None }
    }

    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub(crate) fn granted(
        &self,
        after: State,
        kept: Option<State>,
        now: f64,
        retry_at: Option<f64>,
        reserved: bool,
    ) -> Decision {
        let reset_at = if after.value >= self.capacity {
            Bucket::unless_broken(kept, now).map_or(now, |kept| Bucket::caught_up(kept, now))
        } else {
            // `kept` is `after`, or the state that `after` was refilled from.
            kept.and_then(|kept| self.least_time(kept, now, 0.0, self.capacity)).unwrap_or(MAX_NOW_MS)
        };
        Decision { ok: true, value: after.value, ts: after.ts, retry_at, reset_at, reserved, reason: None }
    }
}
