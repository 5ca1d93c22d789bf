//! No segment of a growing table is large enough for its rebuild to be a noticeable pause.

use super::{SEGMENT_KEYS, Table};
use crate::{Call, Limit};
use std::vec::Vec;
use tidegate_core::{Config, Kind, Policy};

#[test]
fn no_segment_is_ever_large_however_large_the_table() {
    for (max_keys, keys) in [(1_000_000, 1_000_000), (16_777_216, 300_000), (100_000, 300_000)] {
        let mut table = Table::new(max_keys, [3, 4]);
        assert_eq!(table.secret(), [3, 4]);
        // Empty segments alone.
        assert!((1_000..2_000_000).contains(&table.stats().bytes), "{} bytes", table.stats().bytes);
        let policy = Policy::new(&Config { rate: 1.0, period: 1e9, ..Config::new(Kind::TokenBucket) }).unwrap();
        let limit = Limit::new(table.secret(), "one", policy);
        for i in 0u32..keys {
            assert!(table.decide(&limit, Some(&i.to_le_bytes()), Call::at(0.0)).ok);
            if i % 65_536 == 0 || i + 1 == keys {
                let largest = table.segments.iter().map(|segment| segment.places()).max().unwrap();
                assert!(largest <= 4 * SEGMENT_KEYS, "a segment of {largest} places, at {i} of {max_keys} keys");
            }
        }
        table.segments.iter().for_each(|segment| segment.check());
        let stats = table.stats();
        assert_eq!(stats.keys, (keys as usize).min(max_keys));
        assert_eq!(stats.evicted, u64::from(keys).saturating_sub(max_keys as u64));
        assert!(stats.bytes > stats.keys * 32, "{} bytes for {} keys", stats.bytes, stats.keys);
        if stats.keys > 100_000 && keys as usize * 4 > max_keys {
            assert!(stats.bytes < stats.keys * 75, "{} bytes a key", stats.bytes / stats.keys);
        }
    }
}

#[test]
fn a_new_key_of_a_full_table_takes_the_place_of_one_in_its_own_segment() {
    let mut table = Table::new(10_000, [3, 4]);
    let policy = Policy::new(&Config { rate: 1.0, period: 1e9, ..Config::new(Kind::TokenBucket) }).unwrap();
    let limit = Limit::new(table.secret(), "one", policy);
    let mut add = |keys: core::ops::Range<u32>| -> Vec<usize> {
        for i in keys {
            table.decide(&limit, Some(&i.to_le_bytes()), Call::at(0.0));
        }
        table.segments.iter().map(|segment| segment.entries().count()).collect()
    };
    assert_eq!(add(0..10_000), add(10_000..20_000));
}
