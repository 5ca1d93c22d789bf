//! Law 6 in a store that expires states by a clock of its own: the exact bound where that clock steps back.

use crate::law::{CLOCK_END, MAX_SKEW_MS, bucket, cases, limits, powers};
use proptest::prelude::*;
use tidegate_core::{Bucket, State};
use tidegate_oracle::exact::{Exact, rational};
use tidegate_oracle::tolerance::Tolerance;

/// How the clock moves, in periods or in ms, and how many tokens are taken then.
fn moves() -> impl Strategy<Value = (f64, f64, f64)> {
    let periods =
        prop_oneof![Just(1.0), Just(-1.0), -3.0..3.0f64, powers(1e-3, 10.0), powers(1e-3, 10.0).prop_map(|x| -x)];
    let ms = prop_oneof![Just(0.0), Just(600_000.0), Just(-600_000.0), -1e6..1e6f64];
    (periods, ms, 0.0..=1.0f64)
}

proptest! {
    #![proptest_config(cases(3000))]

    /// Only forward movement of the clock refills tokens. So a key is granted at most its capacity and the refill of
    /// all forward movements: of the time that passed, and of each step back once more.
    #[test]
    fn a_store_that_expires_by_its_clock_grants_what_the_clock_moved_forward(
        limit in limits(), by_period: bool, moves in prop::collection::vec(moves(), 1..60),
    ) {
        let (bucket, exact) = (bucket(&limit), Exact::new(&limit));
        let (mut now, mut highest, mut stored): (f64, f64, Option<State>) = (1.7e12, 1.7e12, None);
        let (mut granted, mut forward) = (rational(0.0), 0);
        let mut most = rational(limit.most());
        let mut tolerance = Tolerance::default();
        for (periods, ms, share) in moves {
            let step = if by_period { periods * limit.period } else { ms };
            // At most MAX_SKEW_MS behind the highest reading: a state of that reading would count as a broken clock's.
            let next = (now + step).floor().clamp(highest - MAX_SKEW_MS, CLOCK_END / 2.0);
            if limit.opens() {
                forward += (next - now).max(0.0) as i128;
                most = rational(limit.most()) + exact.earned(0, forward);
            } else if next > now {
                most += exact.earned(now as i128, next as i128);
            }
            now = next;
            highest = highest.max(now);
            // The time to live ends.
            stored = stored.filter(|state| bucket.full_at(Some(*state), now) > now);
            let count = if share > 0.5 { bucket.refill(stored, now).value().max(0.0) } else { share * limit.most() };
            let outcome = bucket.take(stored, now, count, false);
            tolerance.step(1.0, limit.most().max(count));
            if outcome.decision.ok {
                granted += rational(count);
            }
            stored = outcome.write.or(stored);
            let slack = rational(tolerance.tokens());
            prop_assert!(granted <= &most + &slack, "{granted} granted, {most} is the most");
        }
    }

    /// One step back grants at most the refill of the same number of ms, and never more than the capacity.
    #[test]
    fn one_step_back_adds_at_most_what_the_same_step_forward_adds(limit in limits(), back in 0.0..MAX_SKEW_MS) {
        let bucket = bucket(&limit);
        let (from, to) = (1.7e12 - back.floor(), 1.7e12);
        // The state is dropped as full at `to`. The clock steps back to `from`, all is taken, and the clock reaches
        // `to` again.
        let drained = bucket.take(None, from, limit.most(), false);
        prop_assert!(drained.decision.ok);
        let minted = bucket.refill(drained.write, to).value();
        let earned = Exact::new(&limit).earned(from as i128, to as i128);
        prop_assert!(minted <= limit.most() && rational(minted) <= earned + rational(limit.most() * 1e-12), "{minted}");
    }
}

#[test]
fn a_swinging_clock_reaches_the_bound() {
    // Ten tokens a minute. The clock swings by a minute, ten times forward and nine times back.
    let bucket = bucket(&tidegate_oracle::Limit::bucket(10.0, 60_000.0));
    let mut granted = 0.0;
    for _ in 0..10 {
        // Before the swing there is no state: it was full a minute ahead, and its TTL ended. A minute ahead it is full
        // again.
        let drained = bucket.take(None, 1.7e12, 10.0, false);
        granted += f64::from(u8::from(drained.decision.ok)) * 10.0;
        assert_eq!(bucket.full_at(drained.write, 1.7e12 + 60_000.0), 1.7e12 + 60_000.0);
    }
    granted += f64::from(u8::from(bucket.take(None, 1.7e12 + 60_000.0, 10.0, false).decision.ok)) * 10.0;
    assert_eq!(granted, 10.0 + 10.0 * 10.0);
}

#[test]
fn a_broken_clock_does_not_set_the_latest_instant_of_dropped_states() {
    let now = 1.7e12;
    let (ahead, broken) = (now + MAX_SKEW_MS, now + MAX_SKEW_MS + 1.0);
    for (before, at, latest) in [
        (0.0, now, now),
        (now, now - 1.0, now),
        (now, ahead, ahead),
        (ahead, now, ahead),
        (now, broken, now),
        (broken, now, now),
        (broken, broken, broken),
    ] {
        assert_eq!(Bucket::fresh_from(before, at, now), latest, "{before} and {at}");
    }
}
