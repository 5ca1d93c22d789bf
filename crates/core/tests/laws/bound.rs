//! Laws 1 and 6: with any interleaving, retries and clock, no more is granted than the limit allows.

use crate::law::{MAX_SKEW_MS, bucket, calls, cases, core_bits, instants, limits, states};
use num_rational::BigRational;
use num_traits::Zero;
use proptest::prelude::*;
use tidegate_core::{Bucket, Outcome, State};
use tidegate_oracle::exact::{Exact, rational};
use tidegate_oracle::tolerance::Tolerance;
use tidegate_oracle::{Kind, Limit};

/// A grant: its tokens, and the instant at which it counts.
struct Grant {
    at: f64,
    count: f64,
    reserved: bool,
}

/// Every span between two grants has at most `capacity` tokens, and those that were refilled in it.
///
/// A reservation counts when it is paid for. A single one may exceed the capacity: then the bound is its own
/// count, plus the refill of the ms (or window) of its last token.
fn bounded(limit: &Limit, grants: &[Grant], largest: f64) -> Result<(), TestCaseError> {
    let exact = Exact::new(limit);
    let last_bit = match limit.kind {
        Kind::TokenBucket => rational(limit.rate) / rational(limit.period),
        Kind::FixedWindow => rational(limit.rate),
    };
    let mut tolerance = Tolerance::default();
    tolerance.step(grants.len() as f64 + 1.0, largest);
    let slack = rational(tolerance.tokens());
    for from in grants {
        let mut inside: Vec<&Grant> = grants.iter().filter(|g| g.at >= from.at).collect();
        inside.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut sum = BigRational::zero();
        let mut most = rational(limit.most());
        for grant in inside {
            sum += rational(grant.count);
            if grant.reserved {
                most = most.max(rational(grant.count) + &last_bit);
            }
            let earned = exact.earned_at_most(from.at as i128, grant.at as i128);
            prop_assert!(sum <= &most + &earned + &slack, "from {} to {}: {}", from.at, grant.at, sum);
        }
    }
    Ok(())
}

fn history(limit: Limit, from: f64, calls: &[crate::law::Call], far: bool) -> Result<(), TestCaseError> {
    let bucket = bucket(&limit);
    let (mut now, mut stored): (f64, Option<State>) = (from, None);
    let (mut grants, mut largest) = (Vec::new(), limit.most());
    let mut ask = |now: f64, count: f64, reserve: bool, stored: &mut Option<State>| -> Result<Outcome, TestCaseError> {
        let outcome = bucket.take(*stored, now, count, reserve);
        let healed = stored.is_some_and(|s| Bucket::is_broken(s, now)) && outcome.write.is_some();
        if healed {
            // At most one more capacity: the bound starts again, and earlier grants remain.
            prop_assert!(outcome.write.unwrap().value() <= limit.most());
            bounded(&limit, &grants, largest)?;
            grants.clear();
        }
        if outcome.decision.ok {
            let seen = stored.filter(|_| !healed).map_or(now, |s| now.max(s.ts()));
            largest = largest.max(outcome.decision.value.abs()).max(count);
            grants.push(Grant {
                at: outcome.decision.retry_at.unwrap_or(seen),
                count,
                reserved: outcome.decision.reserved,
            });
        }
        *stored = outcome.write.or(*stored);
        Ok(outcome)
    };
    for call in calls {
        now = call.now(&limit, now, far);
        let (count, reserve) = (call.count(&limit), call.op % 3 == 0);
        let outcome = ask(now, count, reserve, &mut stored)?;
        if let (true, false, Some(at)) = (call.retries, outcome.decision.ok, outcome.decision.retry_at) {
            ask(at - 1.0, count, reserve, &mut stored)?;
            prop_assert!(ask(at, count, reserve, &mut stored)?.decision.ok);
            now = at;
        }
    }
    bounded(&limit, &grants, largest)
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn no_span_grants_more_than_the_capacity_and_the_tokens_added_in_it(limit in limits(), from in instants(), calls in calls(1..40)) {
        history(limit, from, &calls, false)?;
    }

    #[test]
    fn a_clock_that_jumps_costs_at_most_one_capacity_each_time(limit in limits(), from in instants(), calls in calls(1..40)) {
        history(limit, from, &calls, true)?;
    }
}

proptest! {
    #![proptest_config(cases(30_000))]

    /// Only the stored `ts` remembers the clock. Behind it, by up to [`MAX_SKEW_MS`], every decision is the one at
    /// `ts`. So a clock that steps back and forth grants what its running maximum would.
    #[test]
    fn a_clock_behind_the_state_decides_as_a_clock_at_its_ts(
        (limit, (state, _)) in limits().prop_flat_map(|limit| (Just(limit), states(limit))), share in 0.0..2.0f64,
        back in 0.0..=MAX_SKEW_MS, reserve: bool,
    ) {
        let Some(state) = state.filter(|s| s.ts() >= 0.0) else { return Ok(()) };
        let (bucket, count) = (bucket(&limit), share * limit.most());
        let now = (state.ts() - back.floor()).max(0.0);
        if bucket.exceeds_capacity(count, reserve) {
            return Ok(());
        }
        let there = bucket.take(Some(state), state.ts(), count, reserve);
        let behind = bucket.take(Some(state), now, count, reserve);
        prop_assert_eq!(core_bits(&behind), core_bits(&there));
    }

    #[test]
    fn a_poisoned_ts_heals_at_the_next_call(
        limit in limits(), now in instants(), value in -2.0..2.0f64, count in 0.0..2.0f64, ahead in 1.0..1e12f64, reserve: bool,
    ) {
        let (bucket, count) = (bucket(&limit), count * limit.most());
        let state = State::new(value * limit.rate, now + MAX_SKEW_MS + ahead.floor()).unwrap();
        prop_assert_eq!(core_bits(&bucket.take(Some(state), now, count, reserve)), core_bits(&bucket.take(None, now, count, reserve)));
        prop_assert_eq!(core_bits(&bucket.charge(Some(state), now, count)), core_bits(&bucket.charge(None, now, count)));
        prop_assert_eq!(core_bits(&bucket.give(Some(state), now, count)), core_bits(&bucket.give(None, now, count)));
        prop_assert_eq!(bucket.full_at(Some(state), now), now);
    }
}
