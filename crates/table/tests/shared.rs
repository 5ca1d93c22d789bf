//! The shared table under real threads: exact totals, all-or-nothing takes, and `max_keys`.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use tidegate_core::{Config, Kind, Policy};
use tidegate_table::{All, Call, Limit, Member, Op, SharedTable};

const THREADS: usize = 8;

fn bucket(rate: f64) -> Policy {
    Policy::new(&Config { rate, period: 1e12, ..Config::new(Kind::TokenBucket) }).unwrap()
}

fn sharded(rate: f64, shards: f64) -> Policy {
    Policy::new(&Config { rate, period: 1e12, shards: Some(shards), ..Config::new(Kind::TokenBucket) }).unwrap()
}

/// Runs `body` on all threads concurrently, each with its number, and adds up their results.
fn on_all(body: impl Fn(usize) -> u64 + Sync) -> u64 {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|i| {
                let (body, start) = (&body, &start);
                scope.spawn(move || {
                    start.wait();
                    body(i)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn one_key_grants_exactly_its_capacity() {
    let table = SharedTable::new(1000, [1, 2]);
    let limit = Limit::new(table.secret(), "one", bucket(10_000.0));
    let take = |_| (0..5000).filter(|_| table.decide(&limit, Some(b"k"), Call::at(0.0)).ok).count() as u64;
    assert_eq!(on_all(take), 10_000);
    assert_eq!(table.value(&limit, Some(b"k"), 0.0).value(), 0.0);
}

#[test]
fn each_of_many_keys_grants_exactly_its_capacity() {
    let table = SharedTable::new(100_000, [1, 2]);
    let limit = Limit::new(table.secret(), "one", bucket(3.0));
    let take = |thread: usize| {
        let keys = (0u32..5000).map(|i| (i * 7 + thread as u32 * 1001) % 5000);
        keys.filter(|key| table.decide(&limit, Some(&key.to_le_bytes()), Call::at(0.0)).ok).count() as u64
    };
    assert_eq!(on_all(take), 15_000);
    assert_eq!(table.stats().keys, 5000);
    assert_eq!(table.stats().evicted + table.stats().expired, 0);
}

#[test]
fn a_limit_with_shards_is_one_bucket_of_one_state() {
    let table = SharedTable::new(100_000, [1, 2]);
    let limit = Limit::new(table.secret(), "one", sharded(4096.0, 8.0));
    let take = |_| (0..2000).filter(|_| table.decide(&limit, None, Call::at(0.0)).ok).count() as u64;
    assert_eq!(on_all(take), 4096);
    assert_eq!(table.value(&limit, None, 0.0).value(), 0.0);
    assert_eq!(table.stats().keys, 1);
}

#[test]
fn take_all_in_any_order_takes_all_or_nothing() {
    let table = SharedTable::new(100_000, [1, 2]);
    let limits = [("a", bucket(3000.0)), ("b", bucket(5000.0)), ("c", sharded(4096.0, 4.0))]
        .map(|(name, policy)| Limit::new(table.secret(), name, policy));
    let taken = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
    let orders: [&[usize]; 6] = [&[0, 1], &[1, 0], &[1, 2], &[2, 1], &[2, 0, 1], &[0, 2]];
    on_all(|thread| {
        for i in 0..2000 {
            let order = orders[(i + thread) % orders.len()];
            let member = |at: &usize| Member::new(&limits[*at], Some(b"k"), 1.0, false);
            let members: Vec<Member> = order.iter().map(member).collect();
            let All { ok, .. } = table.take_all(&members, 0.0, true);
            if ok {
                order.iter().for_each(|at| {
                    taken[*at].fetch_add(1, Relaxed);
                });
            }
        }
        0
    });
    for ((limit, taken), capacity) in limits.iter().zip(&taken).zip([3000.0, 5000.0, 4096.0]) {
        assert_eq!(
            table.value(limit, Some(b"k"), 0.0).value(),
            capacity - taken.load(Relaxed) as f64,
            "{}",
            String::from_utf8_lossy(limit.name())
        );
    }
    let left: Vec<f64> = limits.iter().map(|limit| table.value(limit, Some(b"k"), 0.0).value()).collect();
    assert!(left.iter().filter(|left| **left == 0.0).count() >= 2, "two of three are used up: {left:?}");
}

#[test]
fn a_flood_by_all_threads_stays_within_the_bound_and_spares_debtors() {
    const MAX: usize = 2000;
    let table = SharedTable::new(MAX, [1, 2]);
    let limit = Limit::new(table.secret(), "one", bucket(10.0));
    let debtor = |i: u8| [b'd', i];
    for i in 0..50 {
        table.decide(&limit, Some(&debtor(i)), Call { op: Op::Charge, count: 1000.0, ..Call::at(0.0) });
    }
    on_all(|thread| {
        for i in 0u32..20_000 {
            let key = [i.to_le_bytes(), (thread as u32).to_le_bytes()].concat();
            table.decide(&limit, Some(&key), Call::at(0.0));
            // The states that threads add now are counted already.
            assert!(table.stats().keys <= MAX + THREADS);
        }
        0
    });
    let stats = table.stats();
    assert!(stats.keys <= MAX, "{} keys", stats.keys);
    assert_eq!(stats.keys as u64 + stats.evicted + stats.expired, 50 + 20_000 * THREADS as u64);
    for i in 0..50 {
        assert_eq!(table.value(&limit, Some(&debtor(i)), 0.0).value(), -990.0);
    }
}

#[test]
fn every_state_is_counted_until_it_is_dropped_or_reset() {
    let policy = Policy::new(&Config { rate: 1.0, period: 1000.0, ..Config::new(Kind::TokenBucket) }).unwrap();
    let key = |i: u32| i.to_le_bytes();

    // States fill as others are added: about a thousand are not full at any time.
    let table = SharedTable::new(1_000_000, [1, 2]);
    let limit = Limit::new(table.secret(), "one", policy);
    for i in 0..100_000 {
        table.decide(&limit, Some(&key(i)), Call::at(f64::from(i)));
    }
    let stats = table.stats();
    assert!(stats.keys < 10_000, "{stats:?}");
    assert_eq!((stats.keys as u64 + stats.expired, stats.evicted), (100_000, 0));

    // One segment, without room: each new state replaces one.
    let table = SharedTable::new(100, [1, 2]);
    for i in 0..300 {
        table.decide(&limit, Some(&key(i)), Call::at(0.0));
    }
    let stats = table.stats();
    assert_eq!((stats.keys, stats.evicted, stats.expired), (100, 200, 0));

    let table = SharedTable::new(100, [1, 2]);
    for i in 0..10 {
        table.decide(&limit, Some(&key(i)), Call::at(0.0));
    }
    for _ in 0..2 {
        table.reset(&limit, Some(&key(3)));
        assert_eq!(table.stats().keys, 9);
    }
}

#[test]
fn a_call_that_writes_nothing_drops_no_state() {
    let table = SharedTable::new(100, [1, 2]);
    let limits = [("one", bucket(10.0)), ("parts", sharded(8.0, 4.0))].map(|(n, p)| Limit::new(table.secret(), n, p));
    for i in 0u8..100 {
        table.decide(&limits[0], Some(&[i]), Call { op: Op::Charge, count: 100.0, ..Call::at(0.0) });
    }
    let full = table.stats();
    for i in 0u32..1000 {
        let key = Some(i.to_le_bytes());
        let key = key.as_ref().map(<[u8; 4]>::as_slice);
        for limit in &limits {
            for call in [
                Call { op: Op::Check, ..Call::at(0.0) },
                Call { count: 1000.0, ..Call::at(0.0) },
                Call { count: 0.0, ..Call::at(0.0) },
                Call { op: Op::Give, ..Call::at(0.0) },
            ] {
                table.decide(limit, key, call);
            }
            let members = [&limits[0], &limits[1]].map(|limit| Member::new(limit, key, 1.0, false));
            table.take_all(&members, 0.0, false);
            let never = Member::new(&limits[0], key, 1000.0, false);
            table.take_all(&[members[1], never], 0.0, true);
            let _ = table.value(limit, key, 0.0);
        }
    }
    assert_eq!(table.stats(), full);
}
