//! Tokens that come back at the start of each window.

use crate::bounds::CLOCK_END;
use crate::number::{floor, max, min};
use crate::rule::Rule;
use crate::search::least;
use crate::state::State;

/// Which window `t` falls in. Exact for whole numbers: the difference is at most 2^53 and the period at most 2^40, so
/// a quotient just below a whole number cannot round up to it.
#[inline]
fn index(rule: &Rule, t: f64) -> f64 {
    floor((t - rule.start) / rule.period)
}

/// Where the window of that number begins. From `start` each time, never accumulated, so windows do not drift.
#[inline]
fn start_of_index(rule: &Rule, index: f64) -> f64 {
    rule.start + index * rule.period
}

#[inline]
pub(crate) fn start_of(rule: &Rule, now: f64) -> f64 {
    start_of_index(rule, index(rule, now))
}

/// What `state` holds after `windows` (more than none) have begun.
#[inline]
fn value_after(rule: &Rule, state: State, windows: f64) -> f64 {
    min(state.value + rule.rate * windows, rule.capacity)
}

#[inline]
pub(crate) fn refill(rule: &Rule, state: State, now: f64) -> State {
    let current = index(rule, now);
    let windows = current - index(rule, state.ts);
    if windows <= 0.0 {
        return State { value: min(state.value, rule.capacity), ts: state.ts };
    }
    State { value: value_after(rule, state, windows), ts: start_of_index(rule, current) }
}

#[inline]
pub(crate) fn least_time(rule: &Rule, state: State, now: f64, count: f64, floor: f64) -> Option<f64> {
    let first = index(rule, state.ts);
    let missing = (count + floor) - state.value;
    let windows =
        least(max(index(rule, now) - first, 0.0), index(rule, CLOCK_END) - first, missing / rule.rate, |windows| {
            value_after(rule, state, windows) - count >= floor
        })?;
    Some(start_of_index(rule, first + windows))
}
