//! Fixed windows: tokens refill at the start of each window.

use crate::bounds::{FIRST_REQUEST, MAX_NOW_MS};
use crate::bucket::Bucket;
use crate::number::{ceil, floor, max, min};
use crate::search::least;
use crate::state::State;

/// Origin of the window grid of a state with this `ts`, ms: `ts` itself if windows begin at the first request.
#[inline]
fn grid(bucket: &Bucket, ts: f64) -> f64 {
    if bucket.start == FIRST_REQUEST { ts } else { bucket.start }
}

/// Index of the window that contains `t`. Exact for integers: the difference is at most 2^53 and the period at most
/// 2^40, so a quotient just below an integer cannot round up to it.
#[inline]
pub(crate) fn index(bucket: &Bucket, start: f64, t: f64) -> f64 {
    floor((t - start) / bucket.period)
}

/// Start of the window with this index, ms. Computed from `start` each time, so windows do not drift.
#[inline]
fn start_of_index(bucket: &Bucket, start: f64, index: f64) -> f64 {
    start + index * bucket.period
}

/// Start of the window of a key without a state, ms.
#[inline]
pub(crate) fn start_of(bucket: &Bucket, now: f64) -> f64 {
    let start = grid(bucket, now);
    start_of_index(bucket, start, index(bucket, start, now))
}

/// Tokens of `state` after `windows` more windows have begun; `windows` is at least 1.
#[inline]
fn value_after(bucket: &Bucket, state: State, windows: f64) -> f64 {
    min(state.value + bucket.rate * windows, bucket.capacity)
}

#[inline]
pub(crate) fn refill(bucket: &Bucket, state: State, now: f64) -> State {
    let start = grid(bucket, state.ts);
    let current = index(bucket, start, now);
    let windows = current - index(bucket, start, state.ts);
    let refilled = if windows <= 0.0 {
        State { value: min(state.value, bucket.capacity), ts: state.ts }
    } else {
        State { value: value_after(bucket, state, windows), ts: start_of_index(bucket, start, current) }
    };
    if bucket.start == FIRST_REQUEST && now > state.ts && opens(bucket, refilled, now) {
        return State { ts: now, ..refilled };
    }
    refilled
}

/// Whether the next request opens a new window, because the key is full. The other condition is for a `ts` from outside
/// that is not an integer of at most 2^53: the start of its window is not exact then.
#[inline]
fn opens(bucket: &Bucket, refilled: State, now: f64) -> bool {
    refilled.value >= bucket.capacity || refilled.ts > now
}

#[inline]
pub(crate) fn least_time(bucket: &Bucket, state: State, now: f64, count: f64, floor: f64) -> Option<f64> {
    let start = grid(bucket, state.ts);
    let first = index(bucket, start, state.ts);
    let (none, last) = (max(index(bucket, start, now) - first, 0.0), index(bucket, start, MAX_NOW_MS) - first);
    let windows = least(none, last, estimate(bucket, state, count, floor), |windows| {
        value_after(bucket, state, windows) - count >= floor
    })?;
    // A `ts` from outside may have a fraction.
    Some(ceil(start_of_index(bucket, start, first + windows)))
}

/// Windows until `state` holds `count` tokens above `floor`, up to rounding.
#[inline]
fn estimate(bucket: &Bucket, state: State, count: f64, floor: f64) -> f64 {
    ((count + floor) - state.value) / bucket.rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Kind, Policy};

    #[test]
    fn the_estimate_is_off_by_at_most_one_window() {
        for (rate, period) in [(10.0, 1000.0), (7.0, 60_000.0), (0.3, 1000.0), (1e6, 86_400_000.0), (1.0, 1.0)] {
            let capacity = Some(rate * 1000.0);
            let policy = Policy::new(&Config { rate, period, capacity, ..Config::new(Kind::FixedWindow) }).unwrap();
            let bucket = policy.bucket(0.0);
            for value in [0.0, rate / 3.0, rate * 900.0, -2.5 * rate] {
                let state = State { value, ts: start_of(&bucket, 1_700_000_000_123.0) };
                let most = rate * 1000.0;
                for (count, floor) in [(value.max(0.0) + rate / 50.0, 0.0), (most, 0.0), (most * 2.0, -most)] {
                    let found = least_time(&bucket, state, state.ts, count, floor).unwrap();
                    let (windows, estimate) = ((found - state.ts) / period, estimate(&bucket, state, count, floor));
                    assert!((estimate - windows).abs() <= 1.0, "{bucket:?} {state:?} {count} {floor}");
                }
            }
        }
    }
}
