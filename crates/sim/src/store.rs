//! The shared store: states, and one atomic step at a time, by its own clock.

use tidegate_core::{Decision, Policy, Pool, Rule, State};

use crate::time::{Us, shown_ms};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Takes tokens, or says when.
    Take,
    /// Brings tokens back.
    Give,
    /// Looks.
    Check,
}

/// One step, on one shard of a key.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it does.
    pub op: Op,
    /// Which key.
    pub key: u32,
    /// Which shard; 0 where there is but one.
    pub shard: u32,
    /// How many tokens.
    pub count: f64,
}

/// What came of a step.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// The core's.
    pub decision: Decision,
    /// What was stored before.
    pub before: Option<State>,
    /// The store's clock, ms.
    pub now: f64,
    /// Tokens that it took.
    pub taken: f64,
}

/// How a time that was told compares with what the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honesty {
    /// Granted then, denied one ms before.
    Exact,
    /// Denied then.
    Early,
    /// Granted before.
    Late,
}

/// All states.
#[derive(Debug)]
pub struct Store {
    policy: Policy,
    /// Of one shard; of the whole where there is but one.
    rule: Rule,
    states: Vec<Option<State>>,
    /// Microseconds that its clock is ahead.
    pub offset: i64,
    /// The latest that its clock ever showed, ms.
    latest: f64,
}

impl Store {
    /// An empty store: every key is full.
    #[must_use]
    pub fn new(policy: Policy, keys: u32) -> Store {
        let states = vec![None; keys as usize * policy.shards() as usize];
        Store { policy, rule: policy.shard_rule(0.0), states, offset: 0, latest: shown_ms(0, 0) }
    }

    /// What its clock shows, whole ms.
    #[must_use]
    pub fn now(&self, at: Us) -> f64 {
        shown_ms(at, self.offset).floor()
    }

    /// The latest that its clock ever showed: no more can have come back than for that (law 6).
    #[must_use]
    pub fn latest(&mut self, at: Us) -> f64 {
        self.latest = self.latest.max(self.now(at));
        self.latest
    }

    /// One atomic step.
    pub fn step(&mut self, step: Step, at: Us) -> Reply {
        let now = self.now(at);
        let place = self.place(step.key) + step.shard as usize;
        let before = self.states[place];
        let outcome = match step.op {
            Op::Take => self.rule.take(before, now, step.count, false),
            Op::Give => self.rule.give(before, now, step.count),
            Op::Check => self.rule.charge(before, now, 0.0),
        };
        if outcome.write.is_some() {
            self.states[place] = outcome.write;
        }
        let taken = if step.op == Op::Take && outcome.decision.ok { step.count } else { 0.0 };
        Reply { decision: outcome.decision, before, now, taken }
    }

    /// Whether `count` would be granted at `retry_at`, or now where that has passed, and not before; if nobody else took
    /// anything from now on.
    #[must_use]
    pub fn judge(&self, key: u32, count: f64, retry_at: f64, at: Us) -> Honesty {
        let now = self.now(at);
        if !self.grants(key, count, retry_at.max(now)) {
            Honesty::Early
        } else if retry_at > now && self.grants(key, count, retry_at - 1.0) {
            Honesty::Late
        } else {
            Honesty::Exact
        }
    }

    fn grants(&self, key: u32, count: f64, now: f64) -> bool {
        let shards = self.policy.shards() as usize;
        let states = &self.states[self.place(key)..self.place(key) + shards];
        if shards == 1 {
            return self.rule.take(states[0], now, count.max(0.0), false).decision.ok;
        }
        Pool::new(&self.policy, 0.0, &mut states.to_vec(), now).take(count, false).ok
    }

    fn place(&self, key: u32) -> usize {
        key as usize * self.policy.shards() as usize
    }
}
