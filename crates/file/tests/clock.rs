//! Law 6 in a folder that drops states: a swinging clock grants no more than its running maximum would.

mod temporary;

use std::num::NonZeroU32;
use temporary::{NOW, Temporary};
use tidegate_core::{Config, Kind, MAX_NOW_MS, MAX_SKEW_MS, Policy};
use tidegate_file::{FileStore, Options};
use tidegate_table::{Call, Limit, Op};

const MINUTE: f64 = 60_000.0;

/// Capacity 60 tokens, one token per second.
fn limit(store: &FileStore) -> Limit {
    let config = Config { rate: 60.0, period: MINUTE, ..Config::new(Kind::TokenBucket) };
    Limit::new(store.secret(), "bucket", Policy::new(&config).expect("a legal policy"))
}

fn take(store: &FileStore, limit: &Limit, key: &str, count: f64, now: f64) -> bool {
    store.decide(limit, Some(key.as_bytes()), Call { count, ..Call::at(now) }).expect("an answer").ok
}

#[test]
fn clock_swings_of_ten_minutes_add_no_tokens_if_full_states_are_dropped() {
    let folder = Temporary::new();
    let mut store = folder.open_with(Options { max_keys: NonZeroU32::new(1000), sync: None }).expect("a store");
    let limit = limit(&store);
    let mut granted = 0.0;
    let mut evicted = 0;
    for swing in 0..50_u32 {
        let now = NOW + f64::from(swing) * 2000.0;
        granted += f64::from(take(&store, &limit, "hot", 60.0, now)) * 60.0;
        for other in 0..40 {
            take(&store, &limit, &format!("{swing} {other}"), 1.0, now + 10.0 * MINUTE);
        }
        // A process that opens the folder later reads the instant of the dropped states from it.
        evicted += store.stats().expect("stats").evicted;
        drop(store);
        store = folder.open();
    }
    assert_eq!(evicted, 0, "states that were not full were evicted");
    // The running maximum moves by 698 seconds in all.
    assert!(granted <= 758.0, "{granted} tokens for one swing's 758");
}

#[test]
fn an_evicted_state_grants_one_capacity_and_no_more() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: Some(NonZeroU32::MIN), sync: None }).expect("a store");
    let limit = limit(&store);
    assert!(take(&store, &limit, "hot", 60.0, NOW + 10.0 * MINUTE));
    assert!(take(&store, &limit, "other", 60.0, NOW + 10.0 * MINUTE));
    assert_eq!(store.stats().expect("stats").evicted, 1);
    assert_eq!(store.value(&limit, Some(b"hot"), NOW).expect("a value").ts(), NOW + 10.0 * MINUTE);
    // Evicted with a clock ten minutes ahead: until then the key earns nothing.
    assert!(take(&store, &limit, "hot", 60.0, NOW));
    assert!(!take(&store, &limit, "hot", 1.0, NOW + 10.0 * MINUTE));
    assert!(take(&store, &limit, "hot", 60.0, NOW + 11.0 * MINUTE));
}

#[test]
fn a_full_state_that_is_dropped_counts_from_when_it_was_full() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: Some(NonZeroU32::MIN), sync: None }).expect("a store");
    let limit = limit(&store);
    assert!(take(&store, &limit, "hot", 1.0, NOW));
    // Full a second later, and dropped after ten minutes.
    assert!(take(&store, &limit, "other", 1.0, NOW + 10.0 * MINUTE));
    let stats = store.stats().expect("stats");
    assert_eq!((stats.expired, stats.evicted), (1, 0));
    let value = |now| store.value(&limit, Some(b"hot"), now).expect("a value").ts() - NOW;
    assert_eq!([value(NOW), value(NOW + 2000.0)], [1000.0, 2000.0]);
}

#[test]
fn numbers_that_fill_a_state_sooner_do_not_drop_it_sooner() {
    let folder = Temporary::new();
    let store = folder.open();
    let large = limit(&store);
    let config = Config { rate: 60.0, period: MINUTE, capacity: Some(2.0), ..Config::new(Kind::TokenBucket) };
    let small = Limit::new(store.secret(), "bucket", Policy::new(&config).expect("a legal policy"));
    assert!(take(&store, &large, "hot", 60.0, NOW));
    assert!(take(&store, &small, "hot", 1.0, NOW + 1000.0));
    // Full by the small numbers after three seconds, by the large ones after 61.
    for other in 0..20 {
        assert!(take(&store, &large, &other.to_string(), 60.0, NOW + 10_000.0));
    }
    assert!(!take(&store, &large, "hot", 60.0, NOW + 10_000.0));
    assert!(take(&store, &large, "hot", 9.0, NOW + 10_000.0));
}

#[test]
fn a_state_that_replaces_one_of_a_broken_clock_is_dropped_when_it_is_full() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = limit(&store);
    assert!(take(&store, &limit, "hot", 60.0, NOW + 2.0 * MAX_SKEW_MS));
    assert!(take(&store, &limit, "hot", 1.0, NOW));
    for other in 0..20 {
        assert!(take(&store, &limit, &other.to_string(), 60.0, NOW + 10_000.0));
    }
    assert_eq!(store.stats().expect("stats").expired, 1);
}

#[test]
fn a_state_that_time_ends_too_early_for_is_not_dropped_as_full() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = limit(&store);
    assert!(take(&store, &limit, "hot", 60.0, MAX_NOW_MS));
    for other in 0..20 {
        assert!(take(&store, &limit, &other.to_string(), 60.0, MAX_NOW_MS));
    }
    assert!(!take(&store, &limit, "hot", 1.0, MAX_NOW_MS));
    assert_eq!(store.stats().expect("stats").expired, 0);
}

#[test]
fn the_instant_of_a_broken_clock_is_ignored_and_one_at_the_largest_skew_is_not() {
    for (ahead, then) in [(2.0 * MAX_SKEW_MS, true), (MAX_SKEW_MS, false)] {
        let folder = Temporary::new();
        let store = folder.open_with(Options { max_keys: Some(NonZeroU32::MIN), sync: None }).expect("a store");
        let limit = limit(&store);
        assert!(take(&store, &limit, "ahead", 60.0, NOW + ahead));
        // Each takes the place of the one before.
        assert!(take(&store, &limit, "other", 60.0, NOW));
        assert!(take(&store, &limit, "hot", 60.0, NOW));
        assert_eq!(take(&store, &limit, "hot", 60.0, NOW + 10.0 * MINUTE), then, "{ahead} ms ahead");
    }
}

#[test]
fn an_earlier_instant_does_not_replace_a_later_one() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: NonZeroU32::new(2), sync: None }).expect("a store");
    let limit = limit(&store);
    let charge = |key: &str, count: f64| {
        let call = Call { op: Op::Charge, count, ..Call::at(NOW) };
        store.decide(&limit, Some(key.as_bytes()), call).expect("an answer");
    };
    charge("early", 5000.0);
    assert!(take(&store, &limit, "late", 1.0, NOW + 10.0 * MINUTE));
    // The fullest goes first: the late one, and then the early one.
    charge("third", 9000.0);
    charge("fourth", 8000.0);
    assert!(take(&store, &limit, "hot", 60.0, NOW));
    assert!(!take(&store, &limit, "hot", 60.0, NOW + 10.0 * MINUTE));
}
