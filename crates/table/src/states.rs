//! What the calls need of a table, and the calls that touch more than one state.

use crate::call::{Call, Member, Op};
use crate::limit::{Digest, Limit};
use alloc::vec::Vec;
use tidegate_core::{Decision, Pool, Rule, State, latest, pick_two, take_better};

/// States by digest, read and written while nobody else does.
pub trait States {
    /// The state, where there is one.
    fn read(&self, digest: Digest) -> Option<State>;
    /// Keeps the state, which is as good as none from `full_at` on.
    fn write(&mut self, digest: Digest, state: State, full_at: f64, now: f64);
    /// Forgets the state.
    fn remove(&mut self, digest: Digest);
}

/// What a call writes where it is carried out.
#[derive(Debug)]
pub struct Write {
    digest: Digest,
    state: State,
    full_at: f64,
}

/// Writes what was planned, to the states it was planned on.
pub fn carry_out(states: &mut impl States, writes: &[Write], now: f64) {
    for write in writes {
        states.write(write.digest, write.state, write.full_at, now);
    }
}

/// What `call` on the limit that `digest` stands for would answer; what it would write comes after what is in `writes`.
#[inline(never)]
pub fn plan(
    states: &impl States,
    limit: &Limit,
    key: Option<&[u8]>,
    digest: Digest,
    call: &Call,
    writes: &mut Vec<Write>,
) -> Decision {
    let mut write = |digest, rule: &Rule, state: Option<State>| {
        if let Some(state) = state {
            writes.push(Write { digest, state, full_at: rule.full_at(Some(state), call.now) });
        }
    };
    let policy = limit.policy();
    if policy.shards() == 1 {
        let rule = limit.rule(key);
        let outcome = call.on(&rule, states.read(digest));
        write(digest, &rule, outcome.write);
        return outcome.decision;
    }
    let start = limit.start(key);
    let rule = policy.shard_rule(start);
    if matches!(call.op, Op::Take | Op::Check) {
        let whole = policy.rule(start);
        if whole.exceeds_capacity(call.count, call.reserve) {
            return whole.check(None, call.now, call.count, call.reserve);
        }
        let (a, b) = pick_two(call.random, policy.shards());
        let pair = [limit.shard(digest, a), limit.shard(digest, b)];
        let (which, outcome) = take_better(policy, start, pair.map(|shard| states.read(shard)), call.now, call.count);
        if outcome.decision.ok {
            let shard = if which == 0 { pair[0] } else { pair[1] };
            write(shard, &rule, outcome.write.filter(|_| call.op == Op::Take));
            return outcome.decision;
        }
    }
    let mut all = read_all(states, limit, digest);
    let mut pool = Pool::new(policy, start, &mut all, call.now);
    let (decision, writes_all) = call.on_pool(&mut pool);
    if writes_all {
        for (shard, state) in (0..).zip(&all) {
            write(limit.shard(digest, shard), &rule, *state);
        }
    }
    decision
}

fn read_all(states: &impl States, limit: &Limit, digest: Digest) -> Vec<Option<State>> {
    let mut all = Vec::with_capacity(limit.policy().shards() as usize);
    for shard in 0..limit.policy().shards() {
        all.push(states.read(limit.shard(digest, shard)));
    }
    all
}

/// What a call on several limits would answer.
pub type All = (bool, Option<f64>, Vec<Decision>);

/// Takes from all members or from none (without `takes`: only tells); see
/// [`Table::take_all`](crate::Table::take_all). What it would write goes to `writes`.
#[inline(never)]
pub fn plan_all(states: &impl States, members: &[Member<'_>], now: f64, takes: bool, writes: &mut Vec<Write>) -> All {
    let mut decisions: Vec<Decision> = Vec::with_capacity(members.len());
    let mut digests: Vec<Digest> = Vec::with_capacity(members.len());
    for member in members {
        digests.push(member.digest());
    }
    for (i, (member, digest)) in members.iter().zip(&digests).enumerate() {
        // Two requests on one state ask for their sum, of what is stored.
        let mut count = 0.0;
        let mut last = true;
        for (j, (other, same)) in members.iter().zip(&digests).enumerate() {
            if same == digest && j <= i {
                count += other.count;
            }
            last &= same != digest || j <= i;
        }
        let call = Call { op: Op::Take, now, count, reserve: member.reserve, random: member.random };
        let before = writes.len();
        decisions.push(plan(states, member.limit, member.key, *digest, &call, writes));
        // The last of those on one limit has their sum; of several shards, the others may have picked others.
        if !last {
            writes.truncate(before);
        }
    }
    let ok = decisions.iter().all(|decision| decision.ok);
    if !(ok && takes) {
        writes.clear();
    }
    (ok, latest(ok, decisions.iter().map(|decision| (decision.ok, decision.retry_at))), decisions)
}

/// The limit's two numbers at `now`: of all shards together.
#[must_use]
#[inline(never)]
pub fn value(states: &impl States, limit: &Limit, key: Option<&[u8]>, now: f64) -> State {
    let digest = limit.digest(key);
    if limit.policy().shards() == 1 {
        return limit.rule(key).refill(states.read(digest), now);
    }
    let mut all = read_all(states, limit, digest);
    Pool::new(limit.policy(), limit.start(key), &mut all, now).state()
}

/// Forgets the limit, every shard of it.
#[inline(never)]
pub fn reset(states: &mut impl States, limit: &Limit, key: Option<&[u8]>) {
    let digest = limit.digest(key);
    for shard in 0..limit.policy().shards() {
        states.remove(limit.shard(digest, shard));
    }
}
