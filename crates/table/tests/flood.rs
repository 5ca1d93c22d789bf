//! A flood of new keys through a table much larger than one sample. The fullest state of a sample is evicted: a debtor
//! stays while the flood's keys are fuller, and may be evicted where they are drained as far.

use std::sync::Arc;
use tidegate_core::{Config, Kind, Policy};
use tidegate_table::{Call, Limit, SharedTable, Table};

const NOW: f64 = 1e12;
const CAPACITY: u32 = 10;

fn policy() -> Policy {
    Policy::new(&Config { rate: f64::from(CAPACITY), period: 60_000.0, ..Config::new(Kind::TokenBucket) })
        .expect("a policy within every bound")
}

#[test]
fn a_debtor_in_any_place_of_the_table_outlasts_a_flood() {
    for (max_keys, seeds) in [(1_000, 12), (10_000, 4)] {
        for seed in 0..seeds {
            let mut table = Table::new(max_keys, [seed, 2]);
            let limit = Limit::new(table.secret(), "api", policy());
            for _ in 0..CAPACITY {
                assert!(table.decide(&limit, Some(b"debtor"), Call::at(NOW)).ok);
            }
            for i in 0..200_000u32 {
                table.decide(&limit, Some(&i.to_le_bytes()), Call::at(NOW));
            }
            assert!(!table.decide(&limit, Some(b"debtor"), Call::at(NOW)).ok, "{max_keys} keys, seed {seed}");
            let stats = table.stats();
            assert!(stats.keys <= max_keys && stats.evicted > 0, "{stats:?}");
        }
    }
}

/// How many debtors, of this part of a table, a flood evicts that is 40 times the table.
fn evicted_debtors(max_keys: u32, debtors: u32, seed: u64) -> u32 {
    let mut table = Table::new(max_keys as usize, [seed, 2]);
    let limit = Limit::new(table.secret(), "api", policy());
    let drained = |now| Call { count: f64::from(CAPACITY), ..Call::at(now) };
    for i in 0..debtors {
        assert!(table.decide(&limit, Some(&i.to_be_bytes()), drained(NOW)).ok);
    }
    for i in 0..40 * max_keys {
        table.decide(&limit, Some(&u64::from(i).to_be_bytes()), Call::at(NOW));
    }
    (0..debtors).map(|i| u32::from(table.decide(&limit, Some(&i.to_be_bytes()), drained(NOW)).ok)).sum()
}

#[test]
fn debtors_that_are_half_of_a_table_outlast_a_flood_and_most_of_nine_tenths_do() {
    for (max_keys, seeds) in [(1_000, 2), (10_000, 1)] {
        for seed in 0..seeds {
            assert_eq!(evicted_debtors(max_keys, max_keys / 2, seed), 0, "{max_keys} keys, seed {seed}");
        }
    }
    let lost = evicted_debtors(10_000, 9_000, 1);
    assert!(lost > 0 && lost < 450, "{lost} of 9,000");
}

#[test]
fn a_small_table_stays_small_however_many_keys_it_evicts() {
    for seed in 0..12 {
        let mut table = Table::new(100, [seed, 2]);
        let limit = Limit::new(table.secret(), "api", policy());
        for i in 0..20_000u32 {
            table.decide(&limit, Some(&i.to_le_bytes()), Call::at(NOW));
        }
        let stats = table.stats();
        assert!(stats.keys == 100 && stats.bytes < 100 * 32 * 4, "seed {seed}: {stats:?}");
    }
}

#[test]
fn the_shared_table_keeps_its_debtors_too() {
    for seed in 0..4 {
        let table = Arc::new(SharedTable::new(4_096, [seed, 3]));
        let limit = Limit::new(table.secret(), "api", policy());
        for _ in 0..CAPACITY {
            assert!(table.decide(&limit, Some(b"debtor"), Call::at(NOW)).ok);
        }
        let floods: Vec<_> = (0..2u32)
            .map(|thread| {
                let (table, limit) = (Arc::clone(&table), limit.clone());
                std::thread::spawn(move || {
                    for i in 0..100_000u32 {
                        table.decide(&limit, Some(&(i * 2 + thread).to_le_bytes()), Call::at(NOW));
                    }
                })
            })
            .collect();
        for flood in floods {
            flood.join().expect("a flood that does not panic");
        }
        assert!(!table.decide(&limit, Some(b"debtor"), Call::at(NOW)).ok, "seed {seed}");
        // Two threads may each add one before either observes that the table is full.
        assert!(table.stats().keys <= 4_096 + 2, "{:?}", table.stats());
    }
}

#[test]
fn a_flood_of_equally_drained_keys_evicts_debtors_which_are_counted() {
    let (mut table, shared) = (Table::new(1_000, [5, 2]), SharedTable::new(1_000, [5, 2]));
    let limit = Limit::new(table.secret(), "api", policy());
    let drained = |now| Call { count: f64::from(CAPACITY), ..Call::at(now) };
    let debtors: Vec<[u8; 5]> = (0..100).map(|i| [b'd', b'e', b'b', b't', i]).collect();
    for debtor in &debtors {
        assert!(table.decide(&limit, Some(debtor), drained(NOW)).ok);
        assert!(shared.decide(&limit, Some(debtor), drained(NOW)).ok);
    }
    // Drained as far, 10 ms later: the debtors are fuller by then than any key of the flood.
    for i in 0..20_000_u32 {
        assert!(table.decide(&limit, Some(&i.to_le_bytes()), drained(NOW + 10.0)).ok);
        assert!(shared.decide(&limit, Some(&i.to_le_bytes()), drained(NOW + 10.0)).ok);
    }
    for debtor in &debtors {
        assert!(table.decide(&limit, Some(debtor), Call::at(NOW + 10.0)).ok, "it was evicted: full again");
        assert!(shared.decide(&limit, Some(debtor), Call::at(NOW + 10.0)).ok, "it was evicted: full again");
    }
    for stats in [table.stats(), shared.stats()] {
        assert_eq!((stats.expired, stats.keys), (0, 1_000));
        assert_eq!(stats.evicted, 20_000 + 200 - 1_000);
    }
}
