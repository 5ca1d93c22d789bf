//! A lease decides as the store would if it held all the tokens, and no token is counted twice.

use crate::law::{limits, policy};
use proptest::prelude::*;
use tidegate_core::{Lease, Spending, State};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// A state that is split into a store's state and a lease decides as the whole state does. Where only the store can
    /// decide, the proposed decision is the one of the whole.
    #[test]
    fn a_store_and_a_lease_decide_as_one_state_would(
        limit in limits(), share in 0.0f64..1.0, held in 0.0f64..1.0, count in 0u32..64, wait in 0u32..5000,
    ) {
        let policy = policy(&limit);
        let bucket = policy.bucket(limit.start.unwrap_or(0.0));
        // Dyadic numbers, so that sums are exact; and the refill never fills the store.
        let unit = bucket.capacity() / 1024.0;
        let whole = (share * 1023.0).floor();
        let leased = (held * whole).floor() * unit;
        let now = 1e12;
        let full = bucket.refill(None, now);
        let kept = State::new_unchecked(whole * unit - leased, full.ts());
        let at = now + f64::from(wait).min(limit.period / 4096.0).floor();
        let count = f64::from(count) * unit;
        let one = bucket.take(Some(State::new_unchecked(whole * unit, full.ts())), at, count, false).decision;
        if bucket.refill(Some(kept), at).value() + leased >= bucket.capacity() {
            return Ok(()); // the whole state would be capped at the capacity
        }
        match (Lease { kept, leased }).spend(&bucket, at, count) {
            Spending::Granted(decision, left) => {
                prop_assert!(one.ok || (one.value - count).abs() < unit / 1e6);
                prop_assert_eq!(left, leased - count);
                prop_assert!((decision.value - one.value).abs() <= unit / 1e6);
            }
            Spending::Denied(decision) => {
                prop_assert!(!one.ok || one.value < unit / 1e6);
                prop_assert!((decision.value - one.value).abs() <= unit / 1e6 || one.ok);
            }
            Spending::Undecided(decision) => {
                prop_assert!(leased < count);
                prop_assert!(decision.ok);
            }
        }
    }
}

/// A denial's `retry_at` is the first ms at which the lease and the store together hold the count.
#[test]
fn a_denials_retry_at_is_when_lease_and_store_together_suffice() {
    let limit = tidegate_oracle::Limit::bucket(10.0, 1000.0);
    let bucket = policy(&limit).bucket(0.0);
    let lease = Lease { kept: State::new_unchecked(0.5, 1e12), leased: 1.0 };
    let Spending::Denied(denied) = lease.spend(&bucket, 1e12, 4.0) else { panic!("not enough") };
    assert_eq!((denied.value, denied.retry_at), (1.5, Some(1e12 + 250.0)));
    assert!(matches!(lease.spend(&bucket, 1e12 + 249.0, 4.0), Spending::Denied(_)));
    assert!(matches!(lease.spend(&bucket, 1e12 + 250.0, 4.0), Spending::Undecided(_)));
}

/// A count above the capacity is never granted, however much is leased; and a debt of the store is subtracted.
#[test]
fn a_lease_grants_neither_more_than_the_capacity_nor_the_tokens_of_a_debt() {
    let bucket = policy(&tidegate_oracle::Limit::bucket(10.0, 1000.0)).bucket(0.0);
    let rich = Lease { kept: State::new_unchecked(10.0, 1e12), leased: 50.0 };
    let Spending::Denied(never) = rich.spend(&bucket, 1e12, 11.0) else { panic!("more than the capacity") };
    assert_eq!(never.retry_at, None);
    let Spending::Granted(granted, left) = rich.spend(&bucket, 1e12, 10.0) else { panic!("it is leased") };
    assert_eq!((granted.value, left), (10.0, 40.0));
    let owing = Lease { kept: State::new_unchecked(-3.0, 1e12), leased: 4.0 };
    assert!(matches!(owing.spend(&bucket, 1e12, 2.0), Spending::Denied(_)));
    assert!(matches!(owing.spend(&bucket, 1e12, 1.0), Spending::Granted(..)));
    // A state of a broken clock is for the store to repair, so the store decides.
    let poisoned = Lease { kept: State::new_unchecked(0.0, 1e12 + 4e6), leased: 0.0 };
    assert!(matches!(poisoned.spend(&bucket, 1e12, 1.0), Spending::Undecided(_)));
}

/// In tenths, sums depend on their order: -5.0 + 5.1 is less than 0.1, and 5.1 - 0.1 is 5.0.
#[test]
fn a_denial_takes_nothing_and_its_retry_at_is_exact_where_sums_are_rounded() {
    let bucket = policy(&tidegate_oracle::Limit::window(10.0, 1000.0)).bucket(0.0);
    let tenths = |tenths: i32| f64::from(tenths) / 10.0;
    for kept in -60..=60 {
        let kept = State::new_unchecked(tenths(kept), 0.0);
        for (leased, count) in (0..60).flat_map(|leased| (0..60).map(move |count| (tenths(leased), tenths(count)))) {
            let lease = Lease { kept, leased };
            let Spending::Denied(denied) = lease.spend(&bucket, 0.0, count) else { continue };
            assert!(!denied.ok, "{lease:?} {count}");
            let at = denied.retry_at.expect("a time");
            assert!(matches!(lease.spend(&bucket, at - 1.0, count), Spending::Denied(_)), "{lease:?} {count}");
            assert!(!matches!(lease.spend(&bucket, at, count), Spending::Denied(_)), "{lease:?} {count}");
        }
    }
}
