//! Law 2: `retry_at` and all other returned instants are exact. Also: every decision equals the plain evaluation to the
//! bit.

use crate::law::{bucket, calls, core_bits, instants, legal_limits, limits, naive_bits, naive_state, sound, states};
use proptest::prelude::*;
use tidegate_core::{Bucket, MAX_NOW_MS, State};
use tidegate_oracle::naive;

fn with_state() -> impl Strategy<Value = (tidegate_oracle::Limit, Option<State>, f64)> {
    limits().prop_flat_map(|limit| states(limit).prop_map(move |(state, now)| (limit, state, now)))
}

/// `retryAt` is exact: not 1 ms sooner, not 1 ms later.
fn exact(
    bucket: &Bucket,
    state: Option<State>,
    now: f64,
    count: f64,
    reserve: bool,
    part: f64,
) -> Result<(), TestCaseError> {
    let outcome = bucket.take(state, now, count, reserve);
    let d = outcome.decision;
    let granted = |t: f64| bucket.check(state, t, count, reserve).ok;
    if !d.ok {
        prop_assert_eq!(outcome.write, None);
        match d.retry_at {
            Some(at) => {
                prop_assert!(at > now);
                prop_assert!(granted(at), "denied at its retryAt {}", at);
                prop_assert!(!granted(at - 1.0), "granted before its retryAt {}", at);
                prop_assert!(!granted(now + ((at - 1.0 - now) * part).floor()));
                prop_assert!(granted(at + ((MAX_NOW_MS - at) * part).floor()));
            }
            None => prop_assert!(!granted(MAX_NOW_MS) || !granted(now)),
        }
    } else if let Some(at) = d.retry_at {
        // Of the state that the decision returns: a count of 0 writes nothing, and from the state that stays the same instant
        // can be a millisecond off by rounding.
        let after = Some(State::new_unchecked(d.value, d.ts));
        prop_assert!(d.reserved && reserve && at > now && (outcome.write.is_none() || outcome.write == after));
        prop_assert!(bucket.refill(after, at).value() >= 0.0);
        prop_assert!(bucket.refill(after, at - 1.0).value() < 0.0);
    }
    let kept = outcome.write.or(state).filter(|s| !Bucket::is_broken(*s, now));
    if let (Some(kept), true) = (kept, d.reason.map(|r| r.as_str()) != Some("exceeds capacity")) {
        let at = d.reset_at;
        prop_assert_eq!(at, bucket.full_at(Some(kept), now));
        prop_assert!(at >= now);
        prop_assert!(bucket.refill(Some(kept), at).value() >= bucket.capacity() || at == MAX_NOW_MS);
        prop_assert!(at <= kept.ts().max(now) || bucket.refill(Some(kept), at - 1.0).value() < bucket.capacity());
    }
    sound(&d)
}

#[test]
fn a_check_of_0_tokens_reports_when_the_debt_of_its_state_ends() {
    let limit = tidegate_oracle::Limit {
        capacity: Some(1.1735039030834247),
        max_reserved: Some(2.6384262342501072),
        ..tidegate_oracle::Limit::bucket(0.06104758189451569, 3_559_149_512.0)
    };
    let state = Some(State::new_unchecked(-1.8832630071864394, -1_158_522_821.0));
    exact(&bucket(&limit), state, 0.0, 0.0, true, 0.5).unwrap();
}

proptest! {
    #![proptest_config(crate::law::cases(100_000))]

    #[test]
    fn granted_at_retry_at_and_denied_1_ms_before(
        (limit, state, now) in with_state(), share in 0.0..1.3f64, reserve: bool, part in 0.0..1.0f64,
    ) {
        let bucket = bucket(&limit);
        exact(&bucket, state, now, share * limit.most(), reserve, part)?;
        exact(&bucket, state, now, limit.most(), reserve, part)?;
        exact(&bucket, state, now, 0.0, reserve, part)?;
    }
}

proptest! {
    #![proptest_config(crate::law::cases(20_000))]

    #[test]
    fn every_decision_equals_the_plain_evaluation_to_the_bit((limit, state, now) in with_state(), count in 0.0..3.0f64, reserve: bool, part in 0.0..1.0f64) {
        let (bucket, plain, count) = (bucket(&limit), naive_state(state), count * limit.rate);
        prop_assert_eq!(core_bits(&bucket.take(state, now, count, reserve)), naive_bits(&naive::take(&limit, plain, now, count, reserve)));
        prop_assert_eq!(core_bits(&bucket.give(state, now, count)), naive_bits(&naive::give(&limit, plain, now, count)));
        prop_assert_eq!(core_bits(&bucket.charge(state, now, count)), naive_bits(&naive::charge(&limit, plain, now, count)));
        let ms = (part * limit.period * 9.0).ceil().max(1.0);
        prop_assert_eq!(core_bits(&bucket.block(state, now, ms)), naive_bits(&naive::block(&limit, plain, now, ms)));
        prop_assert_eq!(bucket.full_at(state, now), naive::full_at(&limit, plain, now));
    }

    #[test]
    fn every_history_of_any_legal_limit_equals_the_plain_evaluation(limit in legal_limits(), from in instants(), calls in calls(1..12)) {
        let (bucket, mut now, mut state) = (bucket(&limit), from, None);
        for call in calls {
            now = call.now(&limit, now, true);
            let (count, plain) = (call.count(&limit), naive_state(state));
            let (outcome, expected) = match call.op {
                0..=5 => (bucket.take(state, now, count, false), naive::take(&limit, plain, now, count, false)),
                6..=8 => (bucket.take(state, now, count, true), naive::take(&limit, plain, now, count, true)),
                9 => (bucket.give(state, now, count), naive::give(&limit, plain, now, count)),
                // Smaller numbers round to 0: nothing is blocked then, and retryAt means nothing.
                11 if limit.rate / limit.period > 1e-290 && limit.most() > 1e-290 => (bucket.block(state, now, call.ms(&limit)), naive::block(&limit, plain, now, call.ms(&limit))),
                _ => (bucket.charge(state, now, count), naive::charge(&limit, plain, now, count)),
            };
            prop_assert_eq!(core_bits(&outcome), naive_bits(&expected));
            sound(&outcome.decision)?;
            state = outcome.write.or(state);
            if let (true, Some(at)) = (call.retries, outcome.decision.retry_at) {
                now = at;
            }
        }
    }
}
