//! The public interface of an open folder.

mod temporary;

use std::num::NonZeroU32;
use std::sync::Arc;
use temporary::{NOW, Temporary, bucket, every, granted};
use tidegate_core::{Config, Kind, Policy};
use tidegate_file::{FileStore, Options, SyncMode};
use tidegate_table::{Call, Limit, Member, Op, Table};

#[test]
fn taken_tokens_are_still_taken_after_reopening() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 10.0);
    assert_eq!(granted(&store, &limit, "ann", 7), 7);
    let secret = store.secret();
    drop(store);
    let store = folder.open();
    assert_eq!(store.secret(), secret);
    assert_eq!(granted(&store, &limit, "ann", 7), 3);
    assert_eq!(granted(&store, &limit, "bob", 20), 10);
    assert_eq!(store.stats().expect("stats").keys, 2);
}

#[test]
fn threads_take_exactly_the_capacity() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 1000.0);
    let one = || {
        let store = folder.open();
        granted(&store, &limit, "hot", 600)
    };
    let sum: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().expect("its end")).sum()
    });
    assert_eq!(sum, 1000);
}

#[test]
fn a_folder_that_is_open_is_joined_and_other_settings_are_refused() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: NonZeroU32::new(50), sync: None }).expect("a store");
    assert!(Arc::ptr_eq(&store, &folder.open()));
    let same = Options { max_keys: NonZeroU32::new(50), sync: Some(every(1000)) };
    assert!(Arc::ptr_eq(&store, &folder.open_with(same).expect("the same settings")));
    let other = Temporary::new();
    assert_ne!(other.open().secret(), store.secret());
    assert!(Arc::ptr_eq(&store, &folder.open()), "another folder was opened meanwhile");
    let got = folder.open_with(Options { max_keys: NonZeroU32::new(51), sync: None }).expect_err("another size");
    assert!(got.contains("it is open with `maxKeys` 50, and 51 was requested"), "{got}");
    let got = folder.open_with(Options { max_keys: None, sync: Some(SyncMode::Always) }).expect_err("another sync");
    assert!(got.contains("it is open with `sync` every 1000 ms, and always was requested"), "{got}");
    drop(store);
    let store =
        folder.open_with(Options { max_keys: NonZeroU32::new(51), sync: Some(SyncMode::Always) }).expect("alone");
    assert_eq!(store.stats().expect("stats").max_keys, 51);
    assert_eq!(granted(&store, &bucket(&store, 2.0), "ann", 3), 2);
    drop(store);
    let store = folder.open();
    let kept = Options { max_keys: NonZeroU32::new(51), sync: Some(SyncMode::Always) };
    assert!(Arc::ptr_eq(&store, &folder.open_with(kept).expect("the settings of before")));
}

#[test]
fn a_folder_that_a_killed_process_left_half_made_can_be_opened() {
    let folder = Temporary::new();
    let left = folder.0.join("new");
    std::fs::create_dir_all(&left).expect("a folder");
    std::fs::write(left.join("data.mdb"), [0x5a; 9000]).expect("a file");
    let store = folder.open();
    assert_eq!(granted(&store, &bucket(&store, 2.0), "ann", 3), 2);
    assert!(!left.exists());
}

#[test]
fn denied_and_checked_calls_write_nothing() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 1.0);
    assert_eq!(granted(&store, &limit, "ann", 1), 1);
    let before = std::fs::read(folder.0.join("data.mdb")).expect("a file");
    assert_eq!(granted(&store, &limit, "ann", 50), 0);
    let check = Call { op: Op::Check, ..Call::at(NOW) };
    assert!(store.decide(&limit, Some(b"bob"), check).expect("an answer").ok);
    let [free, denied] = [b"cid", b"ann"].map(|key| Member::new(&limit, Some(key), 1.0, false));
    assert!(!store.take_all(&[free, denied], NOW, true).expect("an answer").ok);
    assert!(store.take_all(&[free], NOW, false).expect("an answer").ok);
    assert!(std::fs::read(folder.0.join("data.mdb")).expect("a file") == before);
    assert!(store.take_all(&[free], NOW, true).expect("an answer").ok);
    assert_eq!(granted(&store, &limit, "cid", 1), 0, "all members were taken from");
}

#[test]
fn a_table_of_few_states_without_room_evicts_the_fullest_of_all() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: NonZeroU32::new(20), sync: None }).expect("a store");
    let limit = bucket(&store, 1000.0);
    for i in 0..19 {
        let call = Call { op: Op::Charge, count: 5000.0, ..Call::at(NOW) };
        store.decide(&limit, Some(format!("debtor {i}").as_bytes()), call).expect("an answer");
    }
    for i in 0..200 {
        assert_eq!(granted(&store, &limit, &format!("flood {i}"), 1), 1);
    }
    for i in 0..19 {
        assert_eq!(granted(&store, &limit, &format!("debtor {i}"), 1), 0, "debtor {i}");
    }
}

#[test]
fn a_new_state_drops_at_most_four_full_ones_and_each_once() {
    for (states, max_keys, dropped) in [(20, 100, 4), (3, 100, 3), (20, 20, 4)] {
        let folder = Temporary::new();
        let store = folder.open_with(Options { max_keys: NonZeroU32::new(max_keys), sync: None }).expect("a store");
        let limit = bucket(&store, 10.0);
        for i in 0..states {
            granted(&store, &limit, &format!("key {i}"), 1);
        }
        // All are full by then.
        store.decide(&limit, Some(b"late"), Call::at(NOW + 3.6e6)).expect("an answer");
        let stats = store.stats().expect("stats");
        assert_eq!((stats.expired, stats.evicted, stats.keys), (dropped, 0, states + 1 - dropped));
    }
}

#[test]
fn random_calls_are_decided_as_in_memory() {
    let folder = Temporary::new();
    let store = folder.open();
    let mut table = Table::new(1000, store.secret());
    let policy = |shards| {
        let config = Config { rate: 10.0, period: 1000.0, shards: Some(shards), ..Config::new(Kind::TokenBucket) };
        Policy::new(&config).expect("a legal policy")
    };
    let limits = [1.0, 3.0].map(|shards| Limit::new(store.secret(), format!("of{shards}"), policy(shards)));
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for step in 0..3000 {
        let limit = &limits[random(2) as usize];
        let key = [b'a' + random(5) as u8];
        let op = [Op::Take, Op::Take, Op::Check, Op::Give, Op::Charge, Op::Block][random(6) as usize];
        let (now, number) = (NOW + step as f64 * 7.0, random(40) as f64);
        let count = if op == Op::Block { 1.0 + number * 9.0 } else { number / 8.0 };
        let call = Call { op, now, count, reserve: random(4) == 0 };
        let got = store.decide(limit, Some(&key), call).expect("an answer");
        assert_eq!(got, table.decide(limit, Some(&key), call), "step {step}");
        assert_eq!(store.value(limit, Some(&key), now).expect("a value"), table.value(limit, Some(&key), now));
        if random(50) == 0 {
            store.reset(limit, Some(&key)).expect("a reset");
            table.reset(limit, Some(&key));
        }
    }
}

#[test]
fn a_flood_of_new_keys_stays_within_max_keys_and_evicts_no_debtor() {
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: NonZeroU32::new(500), sync: None }).expect("a store");
    let limit = bucket(&store, 1000.0);
    let debtors: Vec<String> = (0..250).map(|i| format!("debtor {i}")).collect();
    for debtor in &debtors {
        let call = Call { op: Op::Charge, count: 5000.0, ..Call::at(NOW) };
        assert!(store.decide(&limit, Some(debtor.as_bytes()), call).expect("an answer").ok);
    }
    let bytes = std::fs::metadata(folder.0.join("data.mdb")).expect("a file").len();
    let keys: Vec<String> = (0..20_000).map(|i| format!("flood {i}")).collect();
    for some in keys.chunks(100) {
        let some: Vec<_> = some.iter().map(|key| Some(key.as_bytes())).collect();
        assert!(store.decide_many(&limit, &some, Call::at(NOW)).expect("answers").iter().all(|got| got.ok));
    }
    let stats = store.stats().expect("stats");
    assert!(stats.keys <= 500, "{stats:?}");
    assert!(stats.evicted >= 19_500, "{stats:?}");
    for debtor in &debtors {
        assert!(!store.decide(&limit, Some(debtor.as_bytes()), Call::at(NOW)).expect("an answer").ok, "{debtor}");
    }
    assert_eq!(std::fs::metadata(folder.0.join("data.mdb")).expect("a file").len(), bytes);
}

/// The file has its size from the start. A call on many keys writes nearly all pages anew, beside those that it replaces.
#[test]
fn has_room_for_max_keys_states() {
    let states = 150_000;
    let folder = Temporary::new();
    let store = folder.open_with(Options { max_keys: NonZeroU32::new(states), sync: None }).expect("a store");
    let limit = bucket(&store, 3.0);
    let keys: Vec<[u8; 4]> = (0..states).map(u32::to_le_bytes).collect();
    for some in keys.chunks(10_000) {
        let some: Vec<_> = some.iter().map(|key| Some(key.as_slice())).collect();
        store.decide_many(&limit, &some, Call::at(NOW)).expect("room");
    }
    let stats = store.stats().expect("stats");
    assert_eq!((stats.keys, stats.evicted), (u64::from(states), 0));
}

/// Its states may take more of the file than a smaller `max_keys` needs.
#[test]
fn the_whole_file_is_mapped_after_max_keys_was_lowered() {
    let folder = Temporary::new();
    let open =
        |max_keys| folder.open_with(Options { max_keys: NonZeroU32::new(max_keys), sync: None }).expect("a store");
    let bytes = open(200_000).stats().expect("stats").bytes;
    let store = open(1000);
    assert_eq!(store.stats().expect("stats").bytes, bytes);
    assert_eq!(std::fs::metadata(folder.0.join("data.mdb")).expect("a file").len(), bytes);
    assert_eq!(granted(&store, &bucket(&store, 3.0), "ann", 4), 3);
}

#[test]
fn after_max_keys_was_lowered_new_keys_bring_the_states_down_to_it() {
    let folder = Temporary::new();
    let open =
        |max_keys| folder.open_with(Options { max_keys: NonZeroU32::new(max_keys), sync: None }).expect("a store");
    let store = open(2000);
    let limit = bucket(&store, 1000.0);
    let take = |store: &FileStore, name: &str, keys: usize| {
        let keys: Vec<String> = (0..keys).map(|i| format!("{name} {i}")).collect();
        let calls: Vec<_> = keys.iter().map(|key| Some(key.as_bytes())).collect();
        store.decide_many(&limit, &calls, Call::at(NOW)).expect("answers");
    };
    take(&store, "before", 2000);
    drop(store);
    let store = open(100);
    take(&store, "after", 700);
    let stats = store.stats().expect("stats");
    assert_eq!((stats.keys, stats.evicted), (100, 2600));
}

#[test]
fn full_states_are_dropped_in_passing() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 1000.0);
    let take = |name: &str, now: f64| {
        for i in 0..2000 {
            let key = format!("{name} {i}");
            store.decide(&limit, Some(key.as_bytes()), Call::at(now)).expect("an answer");
        }
    };
    take("early", NOW);
    assert_eq!(store.stats().expect("stats").keys, 2000);
    // All of them are full an hour later; each new state drops some of them.
    take("late", NOW + 3.6e6);
    let stats = store.stats().expect("stats");
    assert!(stats.keys < 2500 && stats.evicted == 0, "{stats:?}");
    assert_eq!(stats.keys + stats.expired, 4000);
}

#[test]
fn after_many_writes_and_evictions_the_file_is_sound_when_reopened() {
    let folder = Temporary::new();
    let open = || folder.open_with(Options { max_keys: NonZeroU32::new(3000), sync: None }).expect("a sound file");
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut now = NOW;
    for round in 0..60 {
        let store = open();
        let limit = bucket(&store, 1000.0);
        for _ in 0..next(40) {
            // Old states are full and are dropped, others are evicted for room; some rounds use few keys.
            now += if next(10) == 0 { 1e7 } else { 1.0 };
            let range = if round % 3 == 0 { 50 } else { 20_000 };
            let keys: Vec<_> = (0..1 + next(400)).map(|_| format!("key {}", next(range))).collect();
            let calls: Vec<_> = keys.iter().map(|key| Some(key.as_bytes())).collect();
            store.decide_many(&limit, &calls, Call::at(now)).expect("answers");
        }
    }
    assert!(open().stats().expect("stats").keys > 0);
}

#[test]
fn the_debug_text_has_no_secret() {
    let folder = Temporary::new();
    let store = folder.open();
    let text = format!("{store:?}");
    assert!(store.secret().iter().all(|half| !text.contains(&half.to_string())), "{text}");
    assert!(text.starts_with("FileStore { folder: "), "{text}");
}

#[test]
fn a_state_that_could_not_be_read_back_is_an_error_and_is_not_written() {
    let folder = Temporary::new();
    let store = folder.open();
    let limit = bucket(&store, 3.0);
    let unchecked = Call { op: Op::Charge, count: f64::INFINITY, ..Call::at(NOW) };
    let error = store.decide(&limit, Some(b"ann"), unchecked).expect_err("no state").to_string();
    assert!(error.ends_with("nothing is written: `value` must be a finite number of tokens; got -Infinity"), "{error}");
    let member = Member::new(&limit, Some(b"ann"), 1.0, false);
    let error = store.take_all(&[member], f64::NAN, true).expect_err("no state").to_string();
    assert!(error.ends_with("`ts` must be a finite number of ms since the Unix epoch; got NaN"), "{error}");
    assert_eq!(granted(&store, &limit, "ann", 4), 3);
    drop(store);
    assert_eq!(folder.open().stats().expect("a sound folder").keys, 1);
}
