//! Tokens that come back continuously.

use crate::bounds::CLOCK_END;
use crate::number::{floor as whole, max, min};
use crate::rule::Rule;
use crate::search::least;
use crate::state::State;

/// What `state` holds at `t`, a time after its `ts`. Product first, then quotient, then sum: in this order everywhere.
#[inline]
fn value_at(rule: &Rule, state: State, t: f64) -> f64 {
    min(state.value + ((t - state.ts) * rule.rate) / rule.period, rule.capacity)
}

#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn refill(rule: &Rule, state: State, now: f64) -> State {
    if now <= state.ts {
        return State { value: min(state.value, rule.capacity), ts: state.ts };
    }
    State { value: value_at(rule, state, now), ts: now }
}

#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn least_time(rule: &Rule, state: State, now: f64, count: f64, floor: f64) -> Option<f64> {
    let missing = (count + floor) - state.value;
    let estimate = state.ts + missing * rule.ms_per_token;
    // Up to its own ts the value stays, so what does not hold at `now` does not hold there either.
    least(whole(max(state.ts, now)), CLOCK_END, estimate, |t| value_at(rule, state, t) - count >= floor)
}
