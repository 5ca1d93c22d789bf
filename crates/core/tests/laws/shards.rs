//! The shards of a limit, as one pool, grant exactly the tokens that they hold together.

use crate::law::{calls, cases, instants, limits, policy};
use proptest::prelude::*;
use tidegate_core::{Bucket, Decision, Pool, State};
use tidegate_oracle::exact::{Exact, rational};
use tidegate_oracle::exact_pool::ExactShards;
use tidegate_oracle::naive::{self, State as Plain};
use tidegate_oracle::naive_pool::Shards;
use tidegate_oracle::tolerance::Tolerance;
use tidegate_oracle::{Limit, exact};

const MOST: f64 = 1_099_511_627_776.0;

fn sharded() -> impl Strategy<Value = Limit> {
    (limits(), 2u32..12).prop_map(|(limit, n)| limit.shards(f64::from(n)))
}

fn exact_states(states: &[Option<State>]) -> Vec<Option<exact::State>> {
    states.iter().map(|s| s.map(|s| exact::State::of(s.value(), s.ts()))).collect()
}

fn core_bits(d: &Decision) -> String {
    format!(
        "{} {:?} {} {:?} {} {} {:?}",
        d.ok,
        d.value.to_bits(),
        d.ts,
        d.retry_at,
        d.reset_at,
        d.reserved,
        d.reason.map(|r| r.as_str())
    )
}

fn plain_bits(d: &naive::Decision) -> String {
    format!("{} {:?} {} {:?} {} {} {:?}", d.ok, d.value.to_bits(), d.ts, d.retry_at, d.reset_at, d.reserved, d.reason)
}

fn same(states: &[Option<State>], plain: &[Option<Plain>]) -> bool {
    let bits = |value: f64, ts: f64| (value.to_bits(), ts.to_bits());
    states.iter().zip(plain).all(|(a, b)| a.map(|s| bits(s.value(), s.ts())) == b.map(|s| bits(s.value, s.ts)))
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn any_count_up_to_the_whole_capacity_is_granted_on_a_fresh_key(limit in sharded(), now in instants(), share in 0.0..=1.0f64) {
        let policy = policy(&limit);
        let granted = |count: f64| {
            let mut fresh = vec![None; policy.shards() as usize];
            Pool::new(&policy, 0.0, &mut fresh, now).take(count, false).0.ok
        };
        prop_assert!(granted(limit.most()) && granted(limit.most() * share));
        let above = (limit.most() * (1.0 + 1e-9) + 1e-9).min(MOST);
        prop_assert!(above <= limit.most() || !granted(above));
    }

    /// Every decision and state equals the plain evaluation. The pool denies only what the shards together cannot
    /// grant, and a take, give or charge changes the sum by exactly its count.
    #[test]
    fn a_history_on_shards_equals_the_plain_evaluation_and_conserves_tokens(limit in sharded(), from in instants(), calls in calls(1..16), first in proptest::collection::vec(0.0..1.0f64, 12), far: bool) {
        let (policy, exact) = (policy(&limit), Exact::new(&limit));
        let n = policy.shards() as usize;
        // Shards are rarely even: each begins with a different part of its capacity.
        let part = limit.most() / n as f64;
        let mut plain: Vec<Option<Plain>> =
            first.iter().take(n).map(|share| (*share > 0.2).then_some(Plain { value: share * part, ts: from })).collect();
        let mut states: Vec<Option<State>> =
            plain.iter().map(|state| state.map(|state| State::new(state.value, state.ts).unwrap())).collect();
        let mut now = from;
        for call in &calls {
            now = call.now(&limit, now, far);
            let count = call.count(&limit);
            let largest = |states: &[Option<State>]| states.iter().flatten().fold(0.0, |most: f64, s| most.max(s.value().abs() * n as f64));
            let held = largest(&states);
            let mut twins = exact_states(&states);
            let before = ExactShards { whole: exact.clone(), states: &mut twins, now: now as i128 }.sum();
            let mut shards = Shards { whole: limit, states: &mut plain, now };
            let reserve = call.op > 5;
            let mut scratch = states.clone();
            let mut pool = Pool::new(&policy, 0.0, &mut scratch, now);
            let (decision, writes) = match call.op {
                0..=8 => pool.take(count, reserve),
                9 => pool.give(count),
                10 => pool.charge(count),
                _ => (pool.block(call.ms(&limit)), true),
            };
            if writes {
                states = scratch;
            }
            let expected = match call.op {
                0..=8 => shards.take(count, reserve),
                9 => shards.give(count),
                10 => shards.charge(count),
                _ => shards.block(call.ms(&limit)),
            };
            prop_assert_eq!(core_bits(&decision), plain_bits(&expected));
            prop_assert!(same(&states, &plain));
            let mut twins = exact_states(&states);
            let after = ExactShards { whole: exact.clone(), states: &mut twins, now: now as i128 }.sum();
            let mut tolerance = Tolerance::default();
            tolerance.step(4.0 * n as f64, limit.most().max(count).max(held).max(largest(&states)));
            let slack = rational(tolerance.tokens());
            if !decision.ok {
                prop_assert_eq!(&after, &before);
                if call.op <= 5 && decision.reason.is_none() {
                    prop_assert!(before.value < rational(count) + slack, "denied what the shards together hold");
                }
            } else if call.op < 9 || call.op == 10 {
                let gone = &before.value - &after.value;
                let left = gone - rational(count);
                prop_assert!(left <= slack.clone() && -left <= slack, "the sum is not conserved");
            }
            // A shard from a broken clock counts as full until it is written, or until its `ts` is within the skew
            // again.
            let broken = states.iter().flatten().any(|s| Bucket::is_broken(*s, now));
            if let (Some(at), true, false) = (decision.retry_at, !decision.ok, broken) {
                let pooled = |t: f64| Pool::new(&policy, 0.0, &mut states.clone(), t).take(count, reserve).0.ok;
                prop_assert!(pooled(at) && !pooled(at - 1.0), "retryAt {}", at);
                if call.retries {
                    now = at;
                }
            }
        }
    }
}
