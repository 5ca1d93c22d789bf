//! One limit in several parts grants what the parts together can, and no more.

mod law;

use law::{calls, cases, instants, limits, policy};
use proptest::prelude::*;
use tidegate_core::{Decision, Policy, Pool, Rule, State, join, pick_two, split_into, take_better};
use tidegate_oracle::exact::{Exact, rational};
use tidegate_oracle::exact_pool::ExactShards;
use tidegate_oracle::naive::{self, State as Plain};
use tidegate_oracle::naive_pool::{Shards, pick};
use tidegate_oracle::tolerance::Tolerance;
use tidegate_oracle::{Limit, exact};

const MOST: f64 = 1_099_511_627_776.0;

fn take(policy: &Policy, states: &mut [Option<State>], random: f64, now: f64, count: f64, reserve: bool) -> Decision {
    let (a, b) = pick_two(random, policy.shards());
    let pair = [states[a as usize], states[b as usize]];
    let (which, outcome) = take_better(policy, 0.0, pair, now, count);
    if outcome.decision.ok {
        if outcome.write.is_some() {
            states[if which == 0 { a } else { b } as usize] = outcome.write;
        }
        return outcome.decision;
    }
    let mut pool = states.to_vec();
    let decision = Pool::new(policy, 0.0, &mut pool, now).take(count, reserve);
    if decision.ok && count > 0.0 {
        states.copy_from_slice(&pool);
    }
    decision
}

fn sharded() -> impl Strategy<Value = Limit> {
    (limits(), 2u32..12).prop_map(|(limit, n)| limit.shards(f64::from(n)))
}

fn exact_states(states: &[Option<State>]) -> Vec<Option<exact::State>> {
    states.iter().map(|s| s.map(|s| exact::State::of(s.value(), s.ts()))).collect()
}

fn told(d: &Decision) -> String {
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

fn plainly(d: &naive::Decision) -> String {
    format!("{} {:?} {} {:?} {} {} {:?}", d.ok, d.value.to_bits(), d.ts, d.retry_at, d.reset_at, d.reserved, d.reason)
}

fn same(states: &[Option<State>], plain: &[Option<Plain>]) -> bool {
    let bits = |value: f64, ts: f64| (value.to_bits(), ts.to_bits());
    states.iter().zip(plain).all(|(a, b)| a.map(|s| bits(s.value(), s.ts())) == b.map(|s| bits(s.value, s.ts)))
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn any_count_up_to_the_whole_capacity_is_granted_on_a_fresh_key(limit in sharded(), now in instants(), share in 0.0..=1.0f64, random in 0.0..1.0f64) {
        let policy = policy(&limit);
        for count in [limit.most(), limit.most() * share] {
            let mut states = vec![None; policy.shards() as usize];
            prop_assert!(take(&policy, &mut states, random, now, count, false).ok);
            let above = (limit.most() * (1.0 + 1e-9) + 1e-9).min(MOST);
            prop_assert!(above <= limit.most() || !take(&policy, &mut states, random, now, above, false).ok);
        }
    }

    /// Every answer and every state is the plain evaluation's; where it denies, the shards together could not grant;
    /// where the pool takes, gives or charges, exactly that is gone from the sum.
    #[test]
    fn a_history_on_shards(limit in sharded(), from in instants(), calls in calls(1..16), randoms in proptest::collection::vec(0.0..1.0f64, 16), far: bool) {
        let (policy, exact) = (policy(&limit), Exact::new(&limit));
        let n = policy.shards() as usize;
        let (mut states, mut plain) = (vec![None; n], vec![None; n]);
        let mut now = from;
        for (call, random) in calls.iter().zip(randoms) {
            now = call.now(&limit, now, far);
            let count = call.count(&limit);
            let largest = |states: &[Option<State>]| states.iter().flatten().fold(0.0, |most: f64, s| most.max(s.value().abs() * n as f64));
            let held = largest(&states);
            let mut twins = exact_states(&states);
            let before = ExactShards { whole: exact.clone(), states: &mut twins, now: now as i128 }.sum();
            let mut shards = Shards { whole: limit, states: &mut plain, now };
            let (decision, expected) = match call.op {
                0..=8 => {
                    let reserve = call.op > 5;
                    (take(&policy, &mut states, random, now, count, reserve), shards.take(random, count, reserve).0)
                }
                op => {
                    let mut scratch = states.clone();
                    let mut pool = Pool::new(&policy, 0.0, &mut scratch, now);
                    let (decision, writes) = if op == 9 { pool.give(count) } else { pool.charge(count) };
                    if writes {
                        states = scratch;
                    }
                    (decision, if op == 9 { shards.give(count) } else { shards.charge(count) })
                }
            };
            prop_assert_eq!(told(&decision), plainly(&expected));
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
            } else if call.op != 9 {
                let gone = &before.value - &after.value;
                let left = gone - rational(count);
                prop_assert!(left <= slack.clone() && -left <= slack, "the sum is not conserved");
            }
            // A shard from a broken clock counts as full until it is written, or until its ts comes near again.
            let broken = states.iter().flatten().any(|s| Rule::is_broken(*s, now));
            if let (Some(at), true, false) = (decision.retry_at, !decision.ok, broken) {
                let reserve = call.op > 5;
                let pooled = |t: f64| Pool::new(&policy, 0.0, &mut states.clone(), t).take(count, reserve).ok;
                prop_assert!(pooled(at) && !pooled(at - 1.0), "retryAt {}", at);
                prop_assert!(take(&policy, &mut states.clone(), random, at, count, reserve).ok);
                // One shard grants what all together cannot only where another is in debt (or empty, but for rounding).
                let part = policy.shard_rule(0.0);
                let owes = states.iter().any(|s| part.refill(*s, at - 1.0).value() < tolerance.tokens());
                prop_assert!(owes || !take(&policy, &mut states.clone(), random, at - 1.0, count, reserve).ok);
                if call.retries {
                    now = at;
                }
            }
        }
    }

    #[test]
    fn pairs_are_distinct_and_the_plain_ones(random in 0.0..1.0f64, n in 2u32..2000) {
        let (a, b) = pick_two(random, n);
        prop_assert!(a != b && a < n && b < n);
        prop_assert_eq!((a as usize, b as usize), pick(random, n as usize));
    }

    #[test]
    fn split_and_join_keep_every_bit(value in -1e12..1e12f64, ts in instants(), n in 1usize..2000) {
        let state = State::new(value, ts).unwrap();
        let mut parts = vec![state; n];
        split_into(state, &mut parts);
        let joined = join(&parts).unwrap();
        prop_assert_eq!((joined.value().to_bits(), joined.ts()), (value.to_bits(), ts));
    }
}

#[test]
fn every_ordered_pair_of_shards_is_picked_alike() {
    for n in [2u32, 3, 7, 10] {
        let pairs = n * (n - 1);
        let seen: std::collections::BTreeSet<_> =
            (0..pairs).map(|i| pick_two((f64::from(i) + 0.5) / f64::from(pairs), n)).collect();
        assert_eq!(seen.len(), pairs as usize);
        // A random number that is rounded up to 1 on its way here picks the last pair.
        assert_eq!(pick_two(1.0, n), (n - 1, n - 2));
    }
    assert_eq!(join(&[]), None);
}
