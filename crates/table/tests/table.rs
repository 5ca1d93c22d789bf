//! The table compared with a map that keeps every state; its bound, its evictions, and its dump.

use proptest::prelude::*;
use std::collections::HashMap;
use tidegate_core::{Config, Kind, MAX_NOW_MS, Policy, State, default_start};
use tidegate_table::{Call, CorruptDump, Limit, Op, SharedTable, Table, checksum};

const SECRET: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

fn bucket(rate: f64, period: f64) -> Policy {
    Policy::new(&Config { rate, period, ..Config::new(Kind::TokenBucket) }).unwrap()
}

fn policies() -> Vec<(&'static str, Policy)> {
    let window = Config { rate: 5.0, period: 700.0, start: Some(13.0), ..Config::new(Kind::FixedWindow) };
    let slow = Config { rate: 3.0, period: 60_000.0, max_reserved: Some(4.0), ..Config::new(Kind::TokenBucket) };
    vec![
        ("bucket", bucket(10.0, 1000.0)),
        ("window", Policy::new(&window).unwrap()),
        ("slow", Policy::new(&slow).unwrap()),
    ]
}

#[derive(Clone, Debug)]
struct Step {
    limit: usize,
    key: u8,
    op: Op,
    count: f64,
    reserve: bool,
    wait: u16,
    reset: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![4 => Just(Op::Take), 1 => Just(Op::Check), 1 => Just(Op::Give), 1 => Just(Op::Charge), 1 => Just(Op::Block)];
    let count = prop_oneof![Just(1.0), Just(0.0), 0.01..12.0f64];
    let rest =
        (any::<bool>(), prop_oneof![3 => Just(0u16), 3 => 0u16..40, 1 => 0u16..3000], prop::bool::weighted(0.05));
    (0usize..3, 0u8..60, op, count, rest).prop_map(|(limit, key, op, count, (reserve, wait, reset))| Step {
        limit,
        key,
        op,
        count,
        reserve,
        wait,
        reset,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With room, the table decides as a map that keeps every state: it drops only full ones.
    #[test]
    fn with_room_it_decides_as_a_map_that_keeps_every_state(steps in prop::collection::vec(step(), 1..500)) {
        let mut table = Table::new(100_000, SECRET);
        let limits: Vec<Limit> = policies().into_iter().map(|(name, p)| Limit::new(table.secret(), name, p)).collect();
        let mut model: HashMap<(usize, u8), State> = HashMap::new();
        let mut now = 1e12;
        for step in steps {
            now += f64::from(step.wait);
            let (limit, key) = (&limits[step.limit], [step.key]);
            let bucket = limit.policy().bucket(0.0);
            let stored = model.get(&(step.limit, step.key)).copied();
            prop_assert_eq!(table.value(limit, Some(&key), now), bucket.refill(stored, now));
            if step.reset {
                table.reset(limit, Some(&key));
                model.remove(&(step.limit, step.key));
                continue;
            }
            let Step { op, reserve, .. } = step;
            let count = if op == Op::Block { (step.count * 99.0).ceil().max(1.0) } else { step.count };
            let got = table.decide(limit, Some(&key), Call { op, now, count, reserve });
            let (expected, write) = match op {
                Op::Check => (bucket.check(stored, now, count, reserve), None),
                Op::Take => { let o = bucket.take(stored, now, count, reserve); (o.decision, o.write) }
                Op::Give => { let o = bucket.give(stored, now, count); (o.decision, o.write) }
                Op::Block => { let o = bucket.block(stored, now, count); (o.decision, o.write) }
                Op::Charge => { let o = bucket.charge(stored, now, count); (o.decision, o.write) }
            };
            prop_assert_eq!(got, expected);
            if let Some(write) = write {
                model.insert((step.limit, step.key), write);
            }
        }
        let stats = table.stats();
        prop_assert!(stats.keys <= model.len());
        prop_assert_eq!(stats.evicted, 0);
    }

    /// The table holds at most `max_keys` states, and every dropped state is counted.
    #[test]
    fn it_holds_at_most_max_keys_and_counts_every_dropped_state(max_keys in 1usize..40, keys in prop::collection::vec((0u16..200, 0u16..2000), 1..600)) {
        let mut table = Table::new(max_keys, SECRET);
        let limit = Limit::new(table.secret(), "one", bucket(2.0, 1000.0));
        let (mut now, mut granted) = (1e12, 0);
        for (key, wait) in keys {
            now += f64::from(wait / 8);
            let before = table.stats();
            granted += usize::from(table.decide(&limit, Some(&key.to_le_bytes()), Call::at(now)).ok);
            let stats = table.stats();
            prop_assert!(stats.keys <= max_keys);
            let gone = (stats.evicted + stats.expired) - (before.evicted + before.expired);
            prop_assert!(stats.keys + gone as usize == before.keys || stats.keys + gone as usize == before.keys + 1);
            prop_assert!(gone <= 1 || stats.expired > before.expired);
        }
        prop_assert!(granted > 0);
    }

    #[test]
    fn any_bytes_restore_to_a_sound_table_or_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..168, flip in any::<u8>()) {
        prop_assert!(Table::restore(10, &bytes).is_err() || bytes.len() >= 40);
        let mut table = Table::new(10, SECRET);
        let limit = Limit::new(table.secret(), "one", bucket(2.0, 1000.0));
        for key in 0u8..4 {
            table.decide(&limit, Some(&[key]), Call::at(5e11));
        }
        let mut dump = table.dump();
        dump[at] ^= flip;
        prop_assert_eq!(Table::restore(10, &dump).is_ok(), flip == 0);
        if let Ok(mut restored) = Table::restore(10, &sealed(dump)) {
            for key in 0u8..8 {
                let limit = Limit::new(restored.secret(), "one", bucket(2.0, 1000.0));
                let d = restored.decide(&limit, Some(&[key]), Call::at(5e11 + 1.0));
                prop_assert!(d.value.is_finite() && d.ts.is_finite() && d.reset_at.is_finite());
            }
            prop_assert!(restored.stats().keys <= 10);
        }
    }
}

#[test]
fn a_flood_of_new_keys_does_not_evict_debtors() {
    for max_keys in [20, 200, 5000] {
        let mut table = Table::new(max_keys, SECRET);
        let limit = Limit::new(table.secret(), "one", bucket(10.0, 60_000.0));
        let debtors: Vec<[u8; 5]> = (0..max_keys as u32 / 10)
            .map(|i| [[1].as_slice(), &i.to_le_bytes()].concat().try_into().unwrap())
            .collect();
        for key in &debtors {
            table.decide(&limit, Some(key), Call { op: Op::Charge, count: 500.0, ..Call::at(0.0) });
        }
        for i in 0u32..100_000 {
            table.decide(&limit, Some(&i.to_le_bytes()), Call::at(f64::from(i / 1000)));
        }
        for key in &debtors {
            let value = table.value(&limit, Some(key), 100.0).value();
            assert!(value < -400.0, "a debtor of 490 tokens was evicted: {value}, at {max_keys} keys");
        }
        let stats = table.stats();
        assert_eq!(stats.keys, max_keys);
        assert_eq!(stats.evicted + stats.expired, (debtors.len() + 100_000 - max_keys) as u64);
        assert_eq!(stats.expired, 0);
    }
}

#[test]
fn full_states_are_dropped_as_new_keys_are_added() {
    let mut table = Table::new(1_000_000, SECRET);
    let limit = Limit::new(table.secret(), "one", bucket(1.0, 1000.0));
    for i in 0u32..200_000 {
        table.decide(&limit, Some(&i.to_le_bytes()), Call::at(f64::from(i)));
    }
    // About a thousand states are not full at any time. There are 976 segments, each with room for a few more.
    let stats = table.stats();
    assert!(stats.keys < 10_000, "{stats:?}");
    assert_eq!(stats.keys as u64 + stats.expired, 200_000);
    assert_eq!(stats.evicted, 0);
}

#[test]
fn a_state_that_is_full_now_is_expired_and_not_evicted() {
    for (now, expired) in [(15.0, 0), (16.0, 1)] {
        let mut table = Table::new(1, SECRET);
        let limit = Limit::new(table.secret(), "one", bucket(1.0, 16.0));
        table.decide(&limit, Some(b"a"), Call::at(0.0));
        table.decide(&limit, Some(b"b"), Call::at(now));
        let stats = table.stats();
        assert_eq!((stats.keys, stats.expired, stats.evicted), (1, expired, 1 - expired), "at {now}");
    }
}

#[test]
fn a_dump_restores_every_answer() {
    let mut table = Table::new(10_000, SECRET);
    let policies = policies();
    let limits: Vec<Limit> = policies.iter().map(|(name, p)| Limit::new(table.secret(), name, *p)).collect();
    for i in 0u32..3000 {
        let call = Call { op: Op::Charge, count: f64::from(i % 17) + 0.3, ..Call::at(1e12 + f64::from(i)) };
        table.decide(&limits[i as usize % 3], Some(&(i % 500).to_le_bytes()), call);
    }
    let restored = Table::restore(10_000, &table.dump()).unwrap();
    let again: Vec<Limit> = policies.iter().map(|(name, p)| Limit::new(restored.secret(), name, *p)).collect();
    for i in 0u32..600 {
        for (a, b) in limits.iter().zip(&again) {
            let key = i.to_le_bytes();
            assert_eq!(table.value(a, Some(&key), 1e12 + 4000.0), restored.value(b, Some(&key), 1e12 + 4000.0));
        }
    }
    assert_eq!(restored.stats().keys, table.stats().keys);
    let small = Table::restore(100, &table.dump()).unwrap();
    assert_eq!(small.stats().keys, 100);
}

/// A dump after a change that its checksum does not show.
fn sealed(mut dump: Vec<u8>) -> Vec<u8> {
    dump.truncate(dump.len().saturating_sub(8));
    dump.extend(checksum(dump.as_chunks().0).to_le_bytes());
    dump
}

/// A header of four words, then four for a state: its digest's halves, its value and its time; and the checksum.
#[test]
fn a_dump_that_is_damaged_in_one_word_is_corrupt() {
    let mut table = Table::new(10, SECRET);
    let limit = Limit::new(table.secret(), "one", bucket(2.0, 1000.0));
    table.decide(&limit, Some(b"a"), Call::at(5e11));
    let dump = table.dump();
    assert_eq!(dump.len(), 9 * 8);
    assert!(Table::restore(10, &dump).is_ok());
    let nan = f64::NAN.to_bits();
    for (word, value, what) in [
        (0, 0, "another magic"),
        (3, nan, "an instant that is no number"),
        (6, nan, "a value that is no number"),
        (7, 0, "a time that no table writes"),
    ] {
        let mut damaged = dump.clone();
        damaged[word * 8..][..8].copy_from_slice(&u64::to_le_bytes(value));
        assert_eq!(Table::restore(10, &sealed(damaged)).err(), Some(CorruptDump), "{what}");
    }
    for bit in 0..dump.len() * 8 {
        let mut damaged = dump.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Table::restore(10, &damaged).err(), Some(CorruptDump), "bit {bit}");
    }
    for cut in 0..dump.len() {
        assert_eq!(Table::restore(10, &dump[..cut]).err(), Some(CorruptDump), "{cut} of its bytes");
    }
    assert_eq!(CorruptDump.to_string(), "`restore` must be all bytes of a dump");
}

#[test]
fn a_dump_that_names_an_identity_twice_is_corrupt() {
    let mut table = Table::new(10, SECRET);
    let limit = Limit::new(table.secret(), "one", bucket(2.0, 1000.0));
    table.decide(&limit, Some(b"a"), Call::at(1.0));
    let mut dump = table.dump();
    dump.truncate(64);
    dump.extend_from_within(32..64);
    dump.extend([0; 8]);
    assert!(Table::restore(10, &sealed(dump)).is_err());
}

/// Folders keep states under these bytes: others would make every key of an older folder full again.
#[test]
fn a_digest_is_the_same_bytes_in_every_version() {
    let window = Config { rate: 1.0, period: 1000.0, ..Config::new(Kind::FixedWindow) };
    let limit = Limit::new(SECRET, "one", Policy::new(&window).unwrap());
    assert_eq!(limit.name(), b"one");
    assert_eq!(limit.start(Some(b"a")), default_start(b"one", Some(b"a"), 1000.0));
    assert_eq!(Limit::new(SECRET, "one", bucket(1.0, 1000.0)).start(Some(b"a")), 0.0);
    let bytes = [None, Some(&b"a"[..])].map(|key| u128::from_be_bytes(limit.digest(key).to_bytes()));
    assert_eq!(bytes, [0xf8e0_62a9_ace8_22f4_dd2c_146d_1ce3_dcbe, 0x475a_7cb9_0e77_28ec_2c2c_dcff_4226_e1ac]);
}

#[test]
fn the_debug_text_has_no_secret_hash_or_state() {
    let secret = [0x0123_4567_89ab_cdef, 0x1122_3344_5566_7788];
    let mut own = Table::new(100_000, secret);
    let shared = SharedTable::new(100_000, secret);
    let config = Config { rate: 1.0, period: 1000.0, ..Config::new(Kind::TokenBucket) };
    let limit = Limit::new(secret, "login", Policy::new(&config).unwrap());
    for key in 0_u32..1000 {
        own.decide(&limit, Some(&key.to_le_bytes()), Call::at(0.0));
        shared.decide(&limit, Some(&key.to_le_bytes()), Call::at(0.0));
    }
    let texts = [format!("{own:?}"), format!("{shared:?}"), format!("{limit:?}")];
    for text in &texts {
        assert!(text.len() < 400 && secret.iter().all(|half| !text.contains(&half.to_string())), "{text}");
    }
    let [own, shared, limit] = texts;
    assert!(own.starts_with("Table { ") && own.contains("keys: 1000, "), "{own}");
    assert!(shared.starts_with("SharedTable { ") && shared.contains("keys: 1000, "), "{shared}");
    assert!(limit.starts_with("Limit { name: \"login\", policy: Policy { "), "{limit}");
}

#[test]
fn a_fraction_of_the_clock_adds_no_tokens() {
    let config = Config { rate: 1000.0, period: 1000.0, capacity: Some(10.0), ..Config::new(Kind::TokenBucket) };
    let mut table = Table::new(100, [1, 2]);
    let limit = Limit::new(table.secret(), "one", Policy::new(&config).unwrap());
    // Three requests per ms, for a second.
    let clock = (0..3000).map(|i| 1.7e12 + f64::from(i / 3) + f64::from(1 + i % 3) * 0.25);
    let granted = clock.filter(|now| table.decide(&limit, None, Call::at(*now)).ok).count();
    assert_eq!(granted, 10 + 999);
}

#[test]
fn a_clock_reading_out_of_range_counts_as_the_nearest_in_it() {
    let mut table = Table::new(100, [1, 2]);
    let limit = Limit::new(table.secret(), "one", bucket(2.0, 1000.0));
    for (reading, now) in [
        (f64::NAN, 0.0),
        (f64::NEG_INFINITY, 0.0),
        (-1.0, 0.0),
        (MAX_NOW_MS + 1.0, MAX_NOW_MS),
        (f64::INFINITY, MAX_NOW_MS),
    ] {
        assert_eq!(Call::at(reading).now, now, "{reading}");
        let key = reading.to_le_bytes();
        let granted = (0..9).filter(|_| table.decide(&limit, Some(&key), Call::at(reading)).ok).count();
        assert_eq!(granted, 2, "{reading}");
    }
}

#[test]
fn limits_with_names_of_any_length_have_states_of_their_own() {
    let mut table = Table::new(100, [1, 2]);
    for name in ["a", "b"].map(|name| name.repeat(2000)) {
        let limit = Limit::new(table.secret(), &name, bucket(1.0, 1000.0));
        for key in [None, Some(&b"key"[..])] {
            assert!(table.decide(&limit, key, Call::at(0.0)).ok);
            assert!(!table.decide(&limit, key, Call::at(0.0)).ok);
        }
    }
}
