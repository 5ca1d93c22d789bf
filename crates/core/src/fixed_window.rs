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
    let (none, last) = (max(index(rule, now) - first, 0.0), index(rule, CLOCK_END) - first);
    let windows = least(none, last, estimate(rule, state, count, floor), |windows| {
        value_after(rule, state, windows) - count >= floor
    })?;
    Some(start_of_index(rule, first + windows))
}

/// After how many windows `state` holds `count` tokens above `floor`, but for rounding.
#[inline]
fn estimate(rule: &Rule, state: State, count: f64, floor: f64) -> f64 {
    ((count + floor) - state.value) / rule.rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Kind, Policy};

    #[test]
    fn the_estimate_is_a_window_off_at_most() {
        for (rate, period) in [(10.0, 1000.0), (7.0, 60_000.0), (0.3, 1000.0), (1e6, 86_400_000.0), (1.0, 1.0)] {
            let capacity = Some(rate * 1000.0);
            let policy = Policy::new(&Config { rate, period, capacity, ..Config::new(Kind::FixedWindow) }).unwrap();
            let rule = policy.rule(0.0);
            for value in [0.0, rate / 3.0, rate * 900.0, -2.5 * rate] {
                let state = State { value, ts: start_of(&rule, 1_700_000_000_123.0) };
                let most = rate * 1000.0;
                for (count, floor) in [(value.max(0.0) + rate / 50.0, 0.0), (most, 0.0), (most * 2.0, -most)] {
                    let found = least_time(&rule, state, state.ts, count, floor).unwrap();
                    let (windows, estimate) = ((found - state.ts) / period, estimate(&rule, state, count, floor));
                    assert!((estimate - windows).abs() <= 1.0, "{rule:?} {state:?} {count} {floor}");
                }
            }
        }
    }
}
