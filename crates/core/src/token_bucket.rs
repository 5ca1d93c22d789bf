//! Token buckets: tokens refill continuously.

use crate::bounds::MAX_NOW_MS;
use crate::bucket::Bucket;
use crate::number::{self, max, min};
use crate::search::least;
use crate::state::State;

/// Tokens of `state` at `t`, ms, which is after its `ts`. Product, then quotient, then sum: every implementation of the
/// algebra keeps this order.
#[inline]
fn value_at(bucket: &Bucket, state: State, t: f64) -> f64 {
    min(state.value + ((t - state.ts) * bucket.rate) / bucket.period, bucket.capacity)
}

#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn refill(bucket: &Bucket, state: State, now: f64) -> State {
    if now <= state.ts {
        return State { value: min(state.value, bucket.capacity), ts: state.ts };
    }
    State { value: value_at(bucket, state, now), ts: now }
}

#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn least_time(bucket: &Bucket, state: State, now: f64, count: f64, floor: f64) -> Option<f64> {
    // The value is constant up to `ts`, so what does not hold at `now` does not hold at `ts` either.
    least(number::floor(max(state.ts, now)), MAX_NOW_MS, estimate(bucket, state, count, floor), |t| {
        value_at(bucket, state, t) - count >= floor
    })
}

/// When `state` holds `count` tokens above `floor`, ms, up to rounding.
#[inline]
fn estimate(bucket: &Bucket, state: State, count: f64, floor: f64) -> f64 {
    state.ts + ((count + floor) - state.value) * bucket.ms_per_token
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Kind, Policy};

    #[test]
    fn the_estimate_is_off_by_at_most_1_ms() {
        for (rate, period) in [(10.0, 1000.0), (7.0, 60_000.0), (0.3, 1000.0), (1e6, 86_400_000.0), (1.0, 1.0)] {
            let policy = Policy::new(&Config { rate, period, ..Config::new(Kind::TokenBucket) }).unwrap();
            let bucket = policy.bucket(0.0);
            for value in [0.0, rate / 3.0, rate * 0.9, -2.5 * rate] {
                let state = State { value, ts: 1_700_000_000_123.0 };
                for (count, floor) in [(value.max(0.0) + rate / 50.0, 0.0), (rate, 0.0), (rate * 4.0, -3.0 * rate)] {
                    let found = least_time(&bucket, state, state.ts, count, floor).unwrap();
                    let estimate = estimate(&bucket, state, count, floor);
                    assert!((estimate - found).abs() <= 1.0, "{bucket:?} {state:?} {count} {floor}");
                }
            }
        }
    }
}
