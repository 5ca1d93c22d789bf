//! Laws 3 and 4: a denial writes nothing, and dropping a full state changes no answer.

use crate::law::{bucket, calls, cases, core_bits, instants, limits, states};
use proptest::prelude::*;
use tidegate_core::{Bucket, MAX_NOW_MS, State};

proptest! {
    #![proptest_config(cases(100_000))]

    #[test]
    fn a_denial_or_check_writes_nothing_and_a_check_decides_as_a_take(
        (limit, (state, now)) in limits().prop_flat_map(|limit| (Just(limit), states(limit))), count in 0.0..3.0f64, reserve: bool,
    ) {
        let bucket = bucket(&limit);
        for count in [count * limit.most(), count * limit.rate, 0.0] {
            let outcome = bucket.take(state, now, count, reserve);
            prop_assert_eq!(outcome.write.is_some(), outcome.decision.ok && count > 0.0);
            prop_assert_eq!(bucket.check(state, now, count, reserve), outcome.decision);
            if let Some(write) = outcome.write {
                prop_assert_eq!((write.value(), write.ts()), (outcome.decision.value, outcome.decision.ts));
            } else if outcome.decision.reason.is_none() {
                let refilled = bucket.refill(state, now);
                prop_assert_eq!((refilled.value(), refilled.ts()), (outcome.decision.value, outcome.decision.ts));
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(10_000))]

    #[test]
    fn dropping_a_state_from_reset_at_on_changes_no_decision(
        limit in limits(), from in instants(), calls in calls(1..12), later in 0.0..3.0f64, counts in [0.0..1.5f64, 0.0..1.5f64],
    ) {
        let bucket = bucket(&limit);
        let (mut now, mut state): (f64, Option<State>) = (from, None);
        for call in &calls {
            now = call.now(&limit, now, false);
            let count = call.count(&limit);
            let outcome = match call.op {
                0..=5 => bucket.take(state, now, count, false),
                6..=8 => bucket.take(state, now, count, true),
                9 => bucket.give(state, now, count),
                10 => bucket.charge(state, now, count),
                _ => bucket.block(state, now, call.ms(&limit)),
            };
            state = outcome.write.or(state);
            let full_at = bucket.full_at(state, now);
            prop_assert!(outcome.decision.reason.is_some() || outcome.decision.reset_at == full_at);
            let then = (full_at + (later * limit.period).floor()).min(crate::law::CLOCK_END);
            if bucket.refill(state, then).value() < limit.most() {
                prop_assert!(!Bucket::may_drop(full_at, then));
                continue;
            }
            for t in [full_at, then] {
                for reserve in [false, true] {
                    let count = counts[usize::from(reserve)] * limit.most();
                    prop_assert_eq!(core_bits(&bucket.take(state, t, count, reserve)), core_bits(&bucket.take(None, t, count, reserve)));
                    prop_assert_eq!(core_bits(&bucket.charge(state, t, count)), core_bits(&bucket.charge(None, t, count)));
                    prop_assert_eq!(bucket.give(state, t, count).decision, bucket.give(None, t, count).decision);
                }
                prop_assert_eq!(bucket.refill(state, t), bucket.refill(None, t));
            }
        }
    }
}

/// A state from outside may have a fraction of an ms, and one of a clock that was ahead may be beyond the latest reading.
#[test]
fn a_full_state_ahead_of_the_clock_is_equal_to_none_from_an_integer_ms_that_a_clock_can_read() {
    let bucket = bucket(&tidegate_oracle::Limit::bucket(10.0, 1000.0));
    let full_at = |ts: f64, now: f64| bucket.full_at(Some(State::new_unchecked(10.0, ts)), now);
    assert_eq!(full_at(5000.25, 5000.0), 5001.0);
    assert_eq!(full_at(MAX_NOW_MS + 1000.0, MAX_NOW_MS - 1000.0), MAX_NOW_MS);
}

#[test]
fn a_state_may_be_dropped_from_its_full_at_on_and_not_at_the_last_ms_which_may_be_too_early() {
    let bucket = bucket(&tidegate_oracle::Limit::bucket(10.0, 1000.0));
    let drained_at = |now: f64| bucket.full_at(bucket.take(None, now, 10.0, false).write, now);
    assert_eq!(drained_at(5000.0), 6000.0);
    assert_eq!([5999.0, 6000.0, MAX_NOW_MS].map(|now| Bucket::may_drop(6000.0, now)), [false, true, true]);
    assert_eq!([500.0, 1000.0].map(|ms| drained_at(MAX_NOW_MS - ms)), [MAX_NOW_MS; 2]);
    assert!(!Bucket::may_drop(MAX_NOW_MS, MAX_NOW_MS));
}
