//! What the calls need of a table, and the calls that touch more than one state.

use crate::call::{Call, Member, Op};
use crate::limit::{Digest, Limit};
use tidegate_core::{Decision, Outcome, Pool, Rule, State, latest, pick_two, take_better};

/// States by digest, read and written while nobody else does.
pub(crate) trait States {
    fn read(&self, digest: Digest) -> Option<State>;
    fn write(&mut self, digest: Digest, state: State, full_at: f64, now: f64);
    fn remove(&mut self, digest: Digest);
}

/// A call's answer, and what it writes where it is carried out.
pub(crate) struct Plan {
    pub(crate) decision: Decision,
    writes: Vec<(Digest, State, f64)>,
}

impl Plan {
    pub(crate) fn carry_out(self, states: &mut impl States, now: f64) -> Decision {
        for (digest, state, full_at) in self.writes {
            states.write(digest, state, full_at, now);
        }
        self.decision
    }

    fn of(digest: Digest, rule: &Rule, outcome: Outcome, now: f64) -> Plan {
        let write = |state| (digest, state, rule.full_at(Some(state), now));
        Plan { decision: outcome.decision, writes: outcome.write.map(write).into_iter().collect() }
    }
}

/// What `call` on the limit that `digest` stands for would answer and write.
#[inline(never)]
pub(crate) fn plan(states: &impl States, limit: &Limit, key: Option<&[u8]>, digest: Digest, call: &Call) -> Plan {
    if limit.policy().shards() > 1 {
        return plan_sharded(states, limit, key, digest, call);
    }
    let rule = limit.rule(key);
    let outcome = call.on(&rule, states.read(digest));
    Plan::of(digest, &rule, outcome, call.now)
}

#[inline(never)]
fn plan_sharded(states: &impl States, limit: &Limit, key: Option<&[u8]>, digest: Digest, call: &Call) -> Plan {
    let (policy, start) = (limit.policy(), limit.start(key));
    let rule = policy.shard_rule(start);
    if matches!(call.op, Op::Take | Op::Check) {
        if policy.rule(start).exceeds_capacity(call.count, call.reserve) {
            return Plan {
                decision: policy.rule(start).check(None, call.now, call.count, call.reserve),
                writes: vec![],
            };
        }
        let (a, b) = pick_two(call.random, policy.shards());
        let (a, b) = (limit.shard(digest, a), limit.shard(digest, b));
        let pair = [states.read(a), states.read(b)];
        let (which, mut outcome) = take_better(policy, start, pair, call.now, call.count);
        if outcome.decision.ok {
            outcome.write = outcome.write.filter(|_| call.op == Op::Take);
            return Plan::of(if which == 0 { a } else { b }, &rule, outcome, call.now);
        }
    }
    let digests: Vec<Digest> = (0..policy.shards()).map(|shard| limit.shard(digest, shard)).collect();
    let mut all: Vec<Option<State>> = digests.iter().map(|digest| states.read(*digest)).collect();
    let mut pool = Pool::new(policy, start, &mut all, call.now);
    let (decision, writes) = call.on_pool(&mut pool);
    let write = |(digest, state): (Digest, Option<State>)| state.map(|s| (digest, s, rule.full_at(Some(s), call.now)));
    let writes = if writes { digests.into_iter().zip(all).filter_map(write).collect() } else { vec![] };
    Plan { decision, writes }
}

/// What a call on several limits would answer, and what it writes where it is carried out.
pub(crate) struct PlanAll {
    ok: bool,
    retry_at: Option<f64>,
    plans: Vec<Plan>,
}

impl PlanAll {
    pub(crate) fn carry_out(self, states: &mut impl States, now: f64) -> (bool, Option<f64>, Vec<Decision>) {
        let decisions = self.plans.into_iter().map(|plan| plan.carry_out(states, now)).collect();
        (self.ok, self.retry_at, decisions)
    }
}

/// Takes from all members or from none (without `takes`: only tells); see
/// [`Table::take_all`](crate::Table::take_all).
#[inline(never)]
pub(crate) fn plan_all(states: &impl States, members: &[Member<'_>], now: f64, takes: bool) -> PlanAll {
    let mut plans: Vec<Plan> = Vec::with_capacity(members.len());
    let digests: Vec<Digest> = members.iter().map(Member::digest).collect();
    for (i, (member, digest)) in members.iter().zip(&digests).enumerate() {
        // Two requests on one state ask for their sum, of what is stored.
        let same = members.iter().zip(&digests).take(i + 1).filter(|(_, other)| *other == digest);
        let count = same.map(|(member, _)| member.count).fold(0.0, |sum, one| sum + one);
        let call = Call { op: Op::Take, now, count, reserve: member.reserve, random: member.random };
        plans.push(plan(states, member.limit, member.key, *digest, &call));
    }
    let ok = plans.iter().all(|plan| plan.decision.ok);
    let retry_at = latest(ok, plans.iter().map(|plan| (plan.decision.ok, plan.decision.retry_at)));
    for (i, (plan, digest)) in plans.iter_mut().zip(&digests).enumerate() {
        // The last of those on one limit has their sum; of several shards, the others may have picked others.
        let last = !digests.iter().skip(i + 1).any(|other| other == digest);
        if !(ok && takes && last) {
            plan.writes.clear();
        }
    }
    PlanAll { ok, retry_at, plans }
}

/// The limit's two numbers at `now`: of all shards together.
#[inline(never)]
pub(crate) fn value(states: &impl States, limit: &Limit, key: Option<&[u8]>, now: f64) -> State {
    let digest = limit.digest(key);
    if limit.policy().shards() == 1 {
        return limit.rule(key).refill(states.read(digest), now);
    }
    let read = |shard| states.read(limit.shard(digest, shard));
    let mut all: Vec<Option<State>> = (0..limit.policy().shards()).map(read).collect();
    Pool::new(limit.policy(), limit.start(key), &mut all, now).state()
}

/// Forgets the limit, every shard of it.
#[inline(never)]
pub(crate) fn reset(states: &mut impl States, limit: &Limit, key: Option<&[u8]>) {
    let digest = limit.digest(key);
    for shard in 0..limit.policy().shards() {
        states.remove(limit.shard(digest, shard));
    }
}
