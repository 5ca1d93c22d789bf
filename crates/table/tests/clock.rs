//! Law 6 in a table that drops states: a swinging clock grants no more than its running maximum would.

use proptest::prelude::*;
use std::collections::HashMap;
use tidegate_core::{Config, Kind, MAX_NOW_MS, Policy};
use tidegate_table::{Call, Limit, SharedTable, Table};

const SECRET: [u64; 2] = [7, 9];
const MINUTE: f64 = 60_000.0;
const NOW: f64 = 1.8e12;
const KEYS: u8 = 3;

fn limit(kind: Kind, rate: f64, period: f64) -> Limit {
    let config = Config { rate, period, ..Config::new(kind) };
    Limit::new(SECRET, "one", Policy::new(&config).unwrap())
}

/// The most that a key may have been granted: the capacity, and the refill of the running maximum of the clock since
/// the key's first grant. A window counts once it has begun.
fn earned(limit: &Limit, first: f64, last: f64) -> f64 {
    let policy = limit.policy();
    let periods = (last - first) / policy.period();
    let refilled = policy.rate() * if policy.kind() == Kind::FixedWindow { periods.floor() + 1.0 } else { periods };
    policy.capacity() + refilled
}

/// A key that takes all it is granted; the next clock step (up to ten minutes back or ahead); the number of new keys.
fn swings() -> impl Strategy<Value = (u8, f64, u8)> {
    let step = prop_oneof![
        1 => Just(0.0),
        1 => 0.0..MINUTE,
        1 => -10.0 * MINUTE..10.0 * MINUTE,
        3 => prop_oneof![Just(10.0 * MINUTE), Just(-10.0 * MINUTE)],
    ];
    let others = prop_oneof![2 => Just(0u8), 1 => 0u8..60];
    (0..KEYS, step.prop_map(f64::floor), others)
}

fn kinds() -> impl Strategy<Value = (Kind, f64)> {
    let period = prop_oneof![Just(MINUTE), Just(5.0 * MINUTE), Just(20.0 * MINUTE)];
    (prop_oneof![Just(Kind::TokenBucket), Just(Kind::FixedWindow)], period)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Each evicted state that was not full grants at most one capacity beyond the bound.
    #[test]
    fn a_swinging_clock_grants_at_most_what_its_running_maximum_would(
        max_keys in prop_oneof![1 => 1usize..20, 3 => Just(1000)], (kind, period) in kinds(), calls in prop::collection::vec(swings(), 1..100),
    ) {
        let limit = limit(kind, 6.0, period);
        let mut own = Table::new(max_keys, SECRET);
        let shared = SharedTable::new(max_keys, SECRET);
        let mut granted = [HashMap::new(), HashMap::new()];
        let (mut now, mut last): (f64, f64) = (NOW, NOW);
        for (at, (key, step, others)) in calls.into_iter().enumerate() {
            // At most the skew behind the running maximum: a state that is further ahead counts as a broken clock's.
            now = (now + step).max(last - 55.0 * MINUTE);
            last = last.max(now);
            for other in 0..u64::from(others) {
                let other = (at as u64 * 256 + other).to_le_bytes();
                own.decide(&limit, Some(&other), Call::at(now));
                shared.decide(&limit, Some(&other), Call::at(now));
            }
            let takes: [&mut dyn FnMut() -> bool; 2] = [
                &mut || own.decide(&limit, Some(&[key]), Call::at(now)).ok,
                &mut || shared.decide(&limit, Some(&[key]), Call::at(now)).ok,
            ];
            for (take, granted) in takes.into_iter().zip(&mut granted) {
                for _ in (0..20).take_while(|_| take()) {
                    let (_, sum) = granted.entry(key).or_insert((now, 0.0));
                    *sum += 1.0;
                }
            }
        }
        for (granted, evicted) in granted.iter().zip([own.stats().evicted, shared.stats().evicted]) {
            let over: f64 = granted.values().map(|(first, sum)| (sum - earned(&limit, *first, last)).max(0.0)).sum();
            let forgiven = evicted as f64 * limit.policy().capacity();
            prop_assert!(over <= forgiven + 1e-6, "{over} more than the bound, {evicted} were evicted");
        }
    }
}

/// Tokens granted to one key while the clock swings by ten minutes a hundred times, and calls on other keys make the
/// table drop its full state.
fn swung(mut take: impl FnMut(&[u8], f64, f64) -> bool) -> f64 {
    let mut granted = 0.0;
    for swing in 0..100_u32 {
        let now = NOW + f64::from(swing) * 2000.0;
        granted += f64::from(take(b"hot", 60.0, now)) * 60.0;
        for other in 0..40 {
            take(&(swing * 40 + other).to_le_bytes(), 1.0, now + 10.0 * MINUTE);
        }
    }
    granted
}

#[test]
fn clock_swings_of_ten_minutes_add_no_tokens_if_full_states_are_dropped() {
    // 60 tokens, and one more each second: ten minutes later a drained state is full.
    let limit = limit(Kind::TokenBucket, 60.0, MINUTE);
    let mut own = Table::new(1000, SECRET);
    let shared = SharedTable::new(1000, SECRET);
    let call = |count, now| Call { count, ..Call::at(now) };
    let in_own = swung(|key, count, now| own.decide(&limit, Some(key), call(count, now)).ok);
    let in_shared = swung(|key, count, now| shared.decide(&limit, Some(key), call(count, now)).ok);
    assert!(own.stats().expired > 1000 && shared.stats().expired > 1000, "states are dropped");
    assert_eq!((own.stats().evicted, shared.stats().evicted), (0, 0));
    // The running maximum moves by 798 seconds in all.
    assert!(in_own <= 858.0 && in_shared <= 858.0, "{in_own} and {in_shared} tokens for one swing's 858");
}

type Take<'t> = dyn FnMut(&[u8], Call) -> bool + 't;

#[test]
fn a_key_whose_full_state_was_dropped_for_room_is_not_refilled_for_the_same_time_again() {
    // Full again one minute after it is drained.
    let limit = limit(Kind::TokenBucket, 60.0, MINUTE);
    let mut own = Table::new(1, SECRET);
    let shared = SharedTable::new(1, SECRET);
    let drained = |now| Call { count: 60.0, ..Call::at(now) };
    let takes: [&mut Take; 2] = [&mut |key, call| own.decide(&limit, Some(key), call).ok, &mut |key, call| {
        shared.decide(&limit, Some(key), call).ok
    }];
    for take in takes {
        assert!(take(b"hot", drained(NOW)));
        assert!(take(b"other", drained(NOW + 10.0 * MINUTE)), "it replaces the first state, which is full by then");
        assert!(take(b"hot", drained(NOW)), "the clock is set back, and the key starts full");
        assert!(!take(b"hot", Call::at(NOW + MINUTE)), "the minute that had refilled it is over only now");
    }
    assert_eq!((own.stats().expired, shared.stats().expired), (1, 1));
}

#[test]
fn one_reading_far_ahead_does_not_delay_the_refill_of_fresh_keys() {
    let limit = limit(Kind::TokenBucket, 60.0, MINUTE);
    let mut table = Table::new(10_000, SECRET);
    for key in 0..400_u32 {
        table.decide(&limit, Some(&key.to_le_bytes()), Call::at(NOW));
    }
    // Fifty minutes ahead all of them are full and most are dropped; years ahead, a state is written.
    for (key, ahead) in [(400_u32, 50.0), (401, 50.0), (402, 5e6), (403, 5e6)] {
        let drained = Call { count: 60.0, ..Call::at(NOW + ahead * MINUTE) };
        assert!(table.decide(&limit, Some(&key.to_le_bytes()), drained).ok);
    }
    let now = NOW + 2000.0;
    for key in 1000..3000_u32 {
        table.decide(&limit, Some(&key.to_le_bytes()), Call { count: 60.0, ..Call::at(now) });
        let answer = table.decide(&limit, Some(&key.to_le_bytes()), Call::at(now + 1000.0));
        assert!(answer.ok, "key {key}: one token has come back a second later: {answer:?}");
    }
}

#[test]
fn a_dump_keeps_what_its_clock_has_dropped() {
    let limit = limit(Kind::TokenBucket, 60.0, MINUTE);
    let mut table = Table::new(1000, SECRET);
    let drained = |now| Call { count: 60.0, ..Call::at(now) };
    assert!(table.decide(&limit, Some(b"hot"), drained(NOW)).ok);
    for key in 0..100_u32 {
        table.decide(&limit, Some(&key.to_le_bytes()), drained(NOW + 10.0 * MINUTE));
    }
    assert!(table.stats().expired > 0);
    let mut restored = Table::restore(1000, &table.dump()).unwrap();
    for table in [&mut table, &mut restored] {
        // Full as of the minute after (or 1/32 of it later); until then it earns nothing more.
        assert!(table.decide(&limit, Some(b"hot"), drained(NOW)).ok);
        assert!(!table.decide(&limit, Some(b"hot"), Call::at(NOW + MINUTE)).ok);
        assert!(table.decide(&limit, Some(b"hot"), Call { count: 50.0, ..Call::at(NOW + 2.0 * MINUTE) }).ok);
    }
}

#[test]
fn a_key_that_a_smaller_table_has_no_room_for_is_not_refilled_for_the_same_time_again() {
    let limit = limit(Kind::TokenBucket, 60.0, MINUTE);
    let mut table = Table::new(1000, SECRET);
    let drained = |now| Call { count: 60.0, ..Call::at(now) };
    assert!(table.decide(&limit, Some(b"first"), drained(NOW)).ok);
    assert!(table.decide(&limit, Some(b"second"), drained(NOW + MINUTE / 2.0)).ok);
    let mut restored = Table::restore(1, &table.dump()).unwrap();
    assert_eq!((restored.stats().keys, restored.stats().evicted), (1, 1));
    // The clock is set back: the key that had no room starts full, as of the latest instant in the dump.
    let back = NOW - MINUTE;
    let fresh =
        [&b"first"[..], b"second"].into_iter().find(|key| restored.value(&limit, Some(key), back).value() > 0.0);
    let mut takes = |count, now| restored.decide(&limit, fresh, Call { count, ..Call::at(now) }).ok;
    assert!(takes(60.0, back));
    assert!(!takes(1.0, NOW), "the minute that had filled it was over in the dump");
    assert!(takes(1.0, NOW + MINUTE));
}

#[test]
fn a_state_that_time_ends_too_early_for_is_not_dropped_as_full() {
    const KEYS: u32 = 20_000;
    let limit = limit(Kind::TokenBucket, 6.0, MINUTE);
    let mut own = Table::new(2 * KEYS as usize, SECRET);
    let shared = SharedTable::new(2 * KEYS as usize, SECRET);
    let take = Call { count: 6.0, ..Call::at(MAX_NOW_MS) };
    for ok in [true, false] {
        for key in 0..KEYS {
            let key = key.to_le_bytes();
            assert_eq!(own.decide(&limit, Some(&key), take).ok, ok);
            assert_eq!(shared.decide(&limit, Some(&key), take).ok, ok);
        }
    }
    assert_eq!([own.stats().expired, shared.stats().expired], [0, 0]);
}
