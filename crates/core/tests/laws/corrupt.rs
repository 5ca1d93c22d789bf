//! No stored state, however wrong, makes a call panic, hang or return NaN.

use crate::law::{legal_limits, policy};
use proptest::prelude::*;
use tidegate_core::{MAX_NOW_MS, Outcome, Pool, State, decode};

const MOST: f64 = 1_099_511_627_776.0;

fn doubles() -> impl Strategy<Value = f64> {
    let edges = [
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        1e300,
        -1e300,
        f64::MAX,
        f64::MIN,
        0.5,
        1.5,
        4503599627370495.5,
        9007199254740993.0,
    ];
    prop_oneof![
        proptest::sample::select(edges.to_vec()),
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()),
        -1e16..1e16,
    ]
}

fn states() -> impl Strategy<Value = Option<State>> {
    proptest::option::weighted(0.95, (doubles(), doubles()).prop_map(|(value, ts)| State::new(value, ts).unwrap()))
}

/// States of shards: small enough that the sum of 65,536 of them is finite.
fn parts() -> impl Strategy<Value = Option<State>> {
    states().prop_map(|state| state.filter(|s| s.value().abs() <= 1e300))
}

fn clocks() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(MAX_NOW_MS),
        Just(MAX_NOW_MS - 1.0),
        (0.0..MAX_NOW_MS).prop_map(f64::floor),
        Just(1.7e12)
    ]
}

fn counts() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(MOST), Just(5e-324), 0.0..100.0, 0.0..MOST]
}

fn lengths() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.0), Just(MOST), (1.0..MOST).prop_map(f64::floor)]
}

fn finite(what: &str, outcome: &Outcome, now: f64) -> Result<(), TestCaseError> {
    let d = outcome.decision;
    let numbers = [d.value, d.ts, d.reset_at, d.remaining(), d.retry_at.unwrap_or(0.0)];
    prop_assert!(numbers.iter().all(|x| x.is_finite()), "{}: {:?}", what, d);
    prop_assert!(d.reset_at >= now && d.reset_at <= MAX_NOW_MS, "{}: {:?}", what, d);
    if let Some(at) = d.retry_at {
        prop_assert!(at > now && at <= MAX_NOW_MS && at.floor() == at, "{}: {:?}", what, d);
    }
    if let Some(write) = outcome.write {
        prop_assert!(write.value().is_finite() && write.ts().is_finite(), "{}: {:?}", what, write);
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::law::cases(60_000))]

    #[test]
    fn any_finite_state_under_any_legal_policy_gives_finite_decisions(limit in legal_limits(), state in states(), now in clocks(), count in counts(), length in lengths(), reserve: bool) {
        let bucket = policy(&limit).bucket(0.0);
        finite("take", &bucket.take(state, now, count, reserve), now)?;
        finite("give", &bucket.give(state, now, count), now)?;
        finite("charge", &bucket.charge(state, now, count), now)?;
        finite("block", &bucket.block(state, now, length), now)?;
        let shown = bucket.refill(state, now);
        prop_assert!(shown.value() <= bucket.capacity() && shown.value().is_finite() && shown.ts().is_finite());
        prop_assert!(bucket.full_at(state, now) <= MAX_NOW_MS);
    }

    #[test]
    fn any_finite_shard_states_give_finite_decisions(
        limit in legal_limits(), mut states in proptest::collection::vec(parts(), 2..6),
        now in clocks(), count in counts(), length in lengths(), reserve: bool,
    ) {
        let policy = policy(&limit.shards(states.len() as f64));
        let mut pool = Pool::new(&policy, 0.0, &mut states, now);
        for decision in [pool.take(count, reserve).0, pool.give(count).0, pool.charge(count).0, pool.block(length)] {
            finite("pool", &Outcome { decision, write: None }, now)?;
        }
        prop_assert!(states.iter().flatten().all(|s| s.value().is_finite() && s.ts().is_finite()));
    }

    #[test]
    fn any_bytes_decode_or_are_corrupt(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        if let Ok(state) = decode(&bytes) {
            prop_assert!(bytes.len() == 16 && state.value().is_finite() && state.ts().is_finite());
            prop_assert_eq!(tidegate_core::encode(state).to_vec(), bytes);
        }
    }
}
