//! The segments of the shared table, and its counts.

use super::SharedTable;
use crate::table::SEGMENT_KEYS;
use crate::{Call, Limit};
use tidegate_core::{Config, Kind, Policy};

#[test]
fn states_spread_over_all_segments_and_their_memory_is_counted() {
    let table = SharedTable::new(200_000, [3, 4]);
    assert_eq!(table.secret(), [3, 4]);
    // Locks alone.
    assert!((5_000..50_000).contains(&table.stats().bytes), "{} bytes", table.stats().bytes);
    let policy = Policy::new(&Config { rate: 1.0, period: 1e9, ..Config::new(Kind::TokenBucket) }).unwrap();
    let limit = Limit::new(table.secret(), "one", policy);
    for i in 0u32..200_000 {
        assert!(table.decide(&limit, Some(&i.to_le_bytes()), Call::at(0.0)).ok);
    }
    let largest = (0..table.segments.len()).map(|i| table.lock(i).places()).max().unwrap();
    assert!(largest <= 4 * SEGMENT_KEYS, "a segment of {largest} places");
    let stats = table.stats();
    assert_eq!(stats.keys, 200_000);
    assert!((32..75).contains(&(stats.bytes / stats.keys)), "{} bytes a key", stats.bytes / stats.keys);
}
