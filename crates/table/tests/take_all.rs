//! `take_all` takes from all limits or from none, and at `retry_at` all are granted.

use proptest::prelude::*;
use tidegate_core::{Config, Decision, Kind, Policy};
use tidegate_table::{Call, Limit, Member, Op, SharedTable, Table};

const NOW: f64 = 1e12;

fn policies() -> impl Strategy<Value = Policy> {
    let capacity = prop_oneof![Just(None), (0.5..20.0f64).prop_map(Some)];
    let reserved = prop_oneof![Just(None), (0.0..9.0f64).prop_map(Some)];
    (any::<bool>(), 0.1..20.0f64, 1u32..5000, capacity, reserved).prop_map(
        |(windows, rate, period, capacity, reserved)| {
            let kind = if windows { Kind::FixedWindow } else { Kind::TokenBucket };
            let config =
                Config { rate, period: f64::from(period), capacity, max_reserved: reserved, ..Config::new(kind) };
            Policy::new(&config).unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn a_failed_take_all_writes_nothing(
        requests in prop::collection::vec((policies(), 0.0..30.0f64, 0.0..15.0f64, any::<bool>()), 1..6), twice: bool,
    ) {
        let secret = [1, 2];
        let (mut table, shared) = (Table::new(1000, secret), SharedTable::new(1000, secret));
        let limits: Vec<Limit> =
            requests.iter().enumerate().map(|(i, (policy, ..))| Limit::new(secret, i.to_string(), *policy)).collect();
        let key = Some(b"k".as_slice());
        let mut members = Vec::new();
        let mut alone: Vec<Decision> = Vec::new();
        for (limit, (_, charged, count, reserve)) in limits.iter().zip(&requests) {
            let charge = Call { op: Op::Charge, count: *charged, ..Call::at(NOW) };
            table.decide(limit, key, charge);
            shared.decide(limit, key, charge);
            let check = |count| Call { op: Op::Check, now: NOW, count, reserve: *reserve };
            alone.push(table.decide(limit, key, check(*count)));
            members.push(Member::new(limit, key, *count, *reserve));
            if twice {
                // Two members on one state take the sum of both.
                alone.push(table.decide(limit, key, check(2.0 * count)));
                members.push(Member::new(limit, key, *count, *reserve));
            }
        }
        let before = table.dump();
        prop_assert_eq!(&table.take_all(&members, NOW, false).decisions, &alone);
        prop_assert_eq!(&table.dump(), &before);
        let all = table.take_all(&members, NOW, true);
        prop_assert_eq!(&all.decisions, &alone);
        prop_assert_eq!(all.ok, alone.iter().all(|decision| decision.ok));
        let deciding: Vec<_> = alone.iter().filter(|d| d.ok == all.ok).map(|d| d.retry_at).collect();
        let latest = deciding.iter().flatten().copied().reduce(f64::max);
        prop_assert_eq!(all.retry_at, if !all.ok && deciding.contains(&None) { None } else { latest });
        let by_threads = shared.take_all(&members, NOW, true);
        prop_assert_eq!((by_threads.ok, by_threads.retry_at, &by_threads.decisions), (all.ok, all.retry_at, &alone));
        let each = if twice { 2.0 } else { 1.0 };
        for (limit, (_, charged, count, _)) in limits.iter().zip(&requests) {
            let left = limit.policy().capacity() - charged - if all.ok { each * count } else { 0.0 };
            for value in [table.value(limit, key, NOW).value(), shared.value(limit, key, NOW).value()] {
                prop_assert!((value - left).abs() < 1e-9, "{value} is not {left}");
            }
        }
        if !all.ok {
            prop_assert_eq!(&table.dump(), &before);
            if let Some(at) = all.retry_at {
                prop_assert!(table.take_all(&members, at, false).ok);
                prop_assert!(!table.take_all(&members, at - 1.0, false).ok);
            }
        }
    }
}
