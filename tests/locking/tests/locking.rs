//! The shared table under a scheduler that picks the next thread at every lock and counter. It runs thousands of
//! interleavings, random ones and by depth of the bug (PCT), each reproducible. It also reports deadlocks.

use shuttle::sync::Arc;
use shuttle::{check_pct, check_random, thread};
use tidegate_core::{Config, Kind, Policy};
use tidegate_locking::{Call, Limit, Member, SharedTable};

const ORDERS: usize = 3000;

/// In random orders, then in those that find a bug of three steps with a known probability.
fn in_many_orders(scenario: fn()) {
    check_random(scenario, ORDERS);
    check_pct(scenario, ORDERS, 3);
}

fn limit(table: &SharedTable, name: &str, rate: f64) -> Limit {
    let policy = Policy::new(&Config { rate, period: 1e12, ..Config::new(Kind::TokenBucket) }).unwrap();
    Limit::new(table.secret(), name, policy)
}

/// Runs `body` on three threads, each with its number, and adds up what they return.
fn on_three(table: &Arc<SharedTable>, body: fn(&SharedTable, usize) -> u64) -> u64 {
    let threads: Vec<_> = (0..3)
        .map(|i| {
            let table = Arc::clone(table);
            thread::spawn(move || body(&table, i))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

#[test]
fn one_key_grants_exactly_its_capacity() {
    in_many_orders(|| {
        let table = Arc::new(SharedTable::new(1000, [1, 2]));
        let granted = on_three(&table, |table, _| {
            let one = limit(table, "one", 4.0);
            (0..2).filter(|_| table.decide(&one, Some(b"k"), Call::at(0.0)).ok).count() as u64
        });
        assert_eq!(granted, 4);
        assert_eq!(table.stats().keys, 1);
    });
}

/// Two limits that are taken in opposite orders: no deadlock, and never one without the other.
#[test]
fn several_limits_in_any_order_are_all_or_nothing() {
    in_many_orders(|| {
        let table = Arc::new(SharedTable::new(100_000, [1, 2]));
        let granted = on_three(&table, |table, i| {
            let (small, large) = (limit(table, "small", 2.0), limit(table, "large", 9.0));
            let mut order = [&small, &large];
            order.rotate_left(i % 2);
            let members = order.map(|limit| Member::new(limit, Some(b"k"), 1.0, false));
            u64::from(table.take_all(&members, 0.0, true).ok)
        });
        assert_eq!(granted, 2);
        assert_eq!(table.value(&limit(&table, "small", 2.0), Some(b"k"), 0.0).value(), 0.0);
        assert_eq!(table.value(&limit(&table, "large", 9.0), Some(b"k"), 0.0).value(), 7.0);
    });
}

/// Calls on a limit concurrent with a reset: every interleaving ends in a state that sequential calls can end in.
#[test]
fn a_concurrent_reset_leaves_a_state_that_sequential_calls_could_leave() {
    in_many_orders(|| {
        let table = Arc::new(SharedTable::new(100_000, [1, 2]));
        let granted = on_three(&table, |table, i| {
            let one = limit(table, "one", 4.0);
            if i == 2 {
                table.reset(&one, Some(b"k"));
                return 0;
            }
            (0..3).filter(|_| table.decide(&one, Some(b"k"), Call::at(0.0)).ok).count() as u64
        });
        let left = table.value(&limit(&table, "one", 4.0), Some(b"k"), 0.0).value();
        assert!((4..=6).contains(&granted), "{granted} granted");
        // Tokens taken before the reset are restored; tokens taken after it are not.
        assert!(left >= 4.0 - granted as f64 && left <= 4.0, "{left} left after {granted}");
    });
}

/// A full table to which several threads add: its count of keys equals the states that it holds.
#[test]
fn the_count_of_keys_equals_the_states_held_while_threads_evict() {
    in_many_orders(|| {
        let table = Arc::new(SharedTable::new(2, [1, 2]));
        let granted = on_three(&table, |table, i| {
            let one = limit(table, "one", 1.0);
            (0..2).filter(|j| table.decide(&one, Some(&[i as u8, *j]), Call::at(0.0)).ok).count() as u64
        });
        assert_eq!(granted, 6);
        let stats = table.stats();
        assert_eq!(stats.keys as u64 + stats.evicted + stats.expired, 6);
        // It may exceed its bound by one per thread that was adding.
        assert!((1..=4).contains(&stats.keys), "{stats:?}");
    });
}

/// Threads that find room for one state, and each add one: in a segment of their own, which its lock does not order.
#[test]
fn concurrent_new_states_do_not_exceed_the_bound() {
    const MAX: usize = 2048;
    check_random(
        || {
            let table = Arc::new(SharedTable::new(MAX, [1, 2]));
            let one = limit(&table, "one", 4.0);
            for i in 1..MAX {
                table.decide(&one, Some(&i.to_le_bytes()), Call::at(0.0));
            }
            on_three(&table, |table, i| {
                let key = (MAX + i).to_le_bytes();
                u64::from(table.decide(&limit(table, "one", 4.0), Some(&key), Call::at(0.0)).ok)
            });
            assert!(table.stats().keys <= MAX, "{} keys", table.stats().keys);
        },
        ORDERS / 10,
    );
}
