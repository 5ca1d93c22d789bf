//! A block denies one token until it ends, and changes nothing else: it adds no token and shortens no debt.

use crate::law::{CLOCK_END, bucket, cases, legal_limits, limits, policy, powers, states};
use proptest::prelude::*;
use tidegate_core::{Bucket, Pool, State};
use tidegate_oracle::{Kind, Limit};

fn lengths() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.0), Just(900_000.0), powers(1.0, 1e11).prop_map(f64::floor)]
}

fn on_states(of: impl Strategy<Value = Limit>) -> impl Strategy<Value = (Limit, Option<State>, f64)> {
    of.prop_flat_map(|limit| states(limit).prop_map(move |(state, now)| (limit, state, now)))
}

/// What a request for one token takes, or for all of a limit that never holds one.
fn one(limit: &Limit) -> f64 {
    limit.most().min(1.0)
}

/// The instant from which on the block need not deny: before it moves to the start of a window.
fn until(bucket: &Bucket, state: Option<State>, now: f64, ms: f64) -> f64 {
    bucket.refill(state, now).ts().max(now) + ms
}

/// Where a block of a full key ends.
fn end(limit: &Limit, until: f64) -> f64 {
    match limit.start.filter(|start| limit.kind == Kind::FixedWindow && start.is_finite()) {
        Some(start) => start + ((until - start) / limit.period).ceil() * limit.period,
        None => until,
    }
}

proptest! {
    #![proptest_config(cases(25_000))]

    #[test]
    fn one_token_is_denied_until_the_block_ends((limit, state, now) in on_states(legal_limits()).prop_filter("tokens", |(limit, ..)| one(limit) > 1e-300), ms in lengths(), part in 0.0..1.0f64) {
        let bucket = bucket(&limit);
        let blocked = bucket.block(state, now, ms);
        let until = until(&bucket, state, now, ms).min(CLOCK_END);
        for t in [now, (now + (until - now) * part).floor(), until - 1.0] {
            if t >= now && t < until && one(&limit) > 0.0 {
                prop_assert!(!bucket.check(blocked.write.or(state), t, one(&limit), false).ok, "granted at {}, {} ms before the end", t, until - t);
            }
        }
        prop_assert!(blocked.decision.retry_at.is_none_or(|at| at >= until && at > now));
    }

    #[test]
    fn one_token_is_granted_exactly_at_the_end((limit, state, now) in on_states(limits()), ms in lengths()) {
        let bucket = bucket(&limit);
        let until = until(&bucket, state, now, ms);
        let owes = bucket.refill(state, until - 1.0).value() < one(&limit);
        let blocked = bucket.block(state, now, ms);
        let at = end(&limit, until);
        if owes || at > CLOCK_END {
            return Ok(());
        }
        prop_assert_eq!(blocked.decision.retry_at, Some(at));
        prop_assert!(bucket.check(blocked.write, at, one(&limit), false).ok);
        let held = bucket.refill(blocked.write, at).value();
        let most = if limit.kind == Kind::TokenBucket { one(&limit) } else { limit.rate.max(one(&limit)) };
        let rounding = blocked.decision.value.abs() * 1e-15;
        prop_assert!(held <= most * (1.0 + 1e-3) + rounding, "{} at the end", held);
    }

    #[test]
    fn a_block_never_raises_a_value((limit, state, now) in on_states(limits()), ms in lengths(), later in proptest::collection::vec(0.0..3.0f64, 4)) {
        let bucket = bucket(&limit);
        let state = state.filter(|s| !Bucket::is_broken(*s, now));
        let blocked = bucket.block(state, now, ms).write.or(state);
        for share in later {
            for t in [now + (share * ms).floor(), now + (share * limit.period).floor()] {
                let (with, without) = (bucket.refill(blocked, t).value(), bucket.refill(state, t).value());
                let scale = blocked.map_or(0.0, |s| s.value().abs()).max(without.abs()).max(limit.most());
                prop_assert!(with <= without + scale * 1e-14, "{} is above {} at {}", with, without, t);
            }
        }
    }

    #[test]
    fn a_block_until_the_same_time_changes_nothing((limit, state, now) in on_states(limits()), ms in lengths(), part in 0.0..1.0f64) {
        let bucket = bucket(&limit);
        let first = bucket.block(state, now, ms);
        let blocked = first.write.or(state);
        let until = until(&bucket, state, now, ms);
        for then in [now, (now + (until - now) * part).floor()] {
            let ms = until - bucket.refill(blocked, then).ts().max(then);
            if ms >= 1.0 && then < until {
                let second = bucket.block(blocked, then, ms);
                prop_assert_eq!((second.write, second.decision.retry_at), (None, first.decision.retry_at));
            }
        }
    }

    /// One token is denied by every shard and by all of them together.
    #[test]
    fn shards_deny_one_token_until_the_block_ends(limit in limits(), n in 2u32..12, now in crate::law::instants(), ms in lengths(), part in 0.0..1.0f64) {
        let limit = limit.shards(f64::from(n));
        let policy = policy(&limit);
        let mut states = vec![None; n as usize];
        let decision = Pool::new(&policy, 0.0, &mut states, now).block(ms);
        let until = (now + ms).min(CLOCK_END);
        let shard = policy.shard_bucket(0.0);
        for t in [now, (now + ms * part).floor(), until - 1.0] {
            if t < until && one(&limit) > 0.0 {
                let pooled = Pool::new(&policy, 0.0, &mut states.clone(), t).take(one(&limit), false).0;
                prop_assert!(!pooled.ok, "the shards together grant at {}, {} ms before the end", t, until - t);
                prop_assert!(states.iter().all(|state| !shard.check(*state, t, one(&limit), false).ok));
            }
        }
        if let Some(at) = decision.retry_at {
            prop_assert!(at >= until && at - end(&limit, until) <= limit.period);
        }
    }
}
