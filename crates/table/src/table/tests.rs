//! No segment of a growing table is large enough for its rebuild to be a noticeable pause.

use super::{SEGMENT_KEYS, Table};
use crate::{Call, Limit};
use tidegate_core::{Config, Kind, Policy};

#[test]
fn no_segment_is_ever_large_however_large_the_table() {
    for (max_keys, keys) in [(1_000_000, 1_000_000), (16_777_216, 300_000), (100_000, 300_000)] {
        let mut table = Table::new(max_keys, [3, 4]);
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
        if stats.keys > 100_000 && keys as usize * 4 > max_keys {
            assert!(stats.bytes < stats.keys * 75, "{} bytes a key", stats.bytes / stats.keys);
        }
    }
}
