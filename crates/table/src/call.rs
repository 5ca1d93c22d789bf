//! The calls on a table of one thread.

use crate::limit::{Digest, Limit};
use crate::segment::Place;
use crate::states::{Stored, Write, carry_out, plan, plan_all, reset, value};
use crate::table::Table;
use alloc::vec::Vec;
use tidegate_core::{Decision, Outcome, Pool, Rule, State};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Takes tokens, or denies.
    Take,
    /// Answers the same and takes nothing.
    Check,
    /// Brings back unused tokens.
    Give,
    /// Takes what was already spent.
    Charge,
}

/// One call, its numbers checked: see [`check_now`](tidegate_core::check_now) and
/// [`check_count`](tidegate_core::check_count).
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What it does.
    pub op: Op,
    /// The clock, whole ms.
    pub now: f64,
    /// Tokens.
    pub count: f64,
    /// Whether tokens may be owed (only `Take` and `Check`).
    pub reserve: bool,
    /// Uniform in [0, 1): which two shards are looked at. Read only where there are shards.
    pub random: f64,
}

impl Call {
    /// Takes one token at `now`.
    #[must_use]
    pub fn at(now: f64) -> Call {
        Call { op: Op::Take, now, count: 1.0, reserve: false, random: 0.0 }
    }

    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub(crate) fn apply(&self, rule: &Rule, state: Option<State>) -> Outcome {
        if self.op == Op::Take {
            return rule.take(state, self.now, self.count, self.reserve);
        }
        self.apply_other(rule, state)
    }

    /// The call on a state that somebody keeps: pure. What it would write is told.
    ///
    /// It is `apply` as one piece of code, for wherever a copy of its own is not worth its size.
    #[inline(never)]
    #[must_use]
    pub fn on(&self, rule: &Rule, state: Option<State>) -> Outcome {
        self.apply(rule, state)
    }

    /// The call on all shards as one pool. Tells whether the pool's states are to be written.
    pub fn on_pool(&self, pool: &mut Pool<'_>) -> (Decision, bool) {
        match self.op {
            Op::Take => {
                let decision = pool.take(self.count, self.reserve);
                (decision, decision.ok && self.count > 0.0)
            }
            Op::Check => (pool.take(self.count, self.reserve), false),
            Op::Give => pool.give(self.count),
            Op::Charge => pool.charge(self.count),
        }
    }

    #[inline(never)]
    fn apply_other(&self, rule: &Rule, state: Option<State>) -> Outcome {
        match self.op {
            Op::Take | Op::Check => {
                Outcome { decision: rule.check(state, self.now, self.count, self.reserve), write: None }
            }
            Op::Give => rule.give(state, self.now, self.count),
            Op::Charge => rule.charge(state, self.now, self.count),
        }
    }
}

/// One limit of a `take_all`.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// The key, where there is one.
    pub key: Option<&'a [u8]>,
    /// Tokens to take.
    pub count: f64,
    /// Whether tokens may be owed.
    pub reserve: bool,
    /// See [`Call::random`].
    pub random: f64,
}

impl Member<'_> {
    pub(crate) fn digest(&self) -> Digest {
        self.limit.digest(self.key)
    }
}

impl Table {
    /// One call on one limit and key.
    #[inline]
    pub fn decide(&mut self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Decision {
        self.decide_digest(limit, key, limit.digest(key), call)
    }

    /// The same, for a key whose digest is known from the call before.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub fn decide_digest(&mut self, limit: &Limit, key: Option<&[u8]>, digest: Digest, call: Call) -> Decision {
        if limit.policy().shards() > 1 {
            let mut changes = Vec::new();
            let Ok(decision) = plan(self, limit, key, digest, &call, &mut changes);
            let Ok(()) = carry_out(self, &changes, call.now);
            return decision;
        }
        let computed;
        let rule = match limit.common_rule() {
            Some(rule) => rule,
            None => {
                computed = limit.rule(key);
                &computed
            }
        };
        let at = self.segment_of(digest);
        let Some(segment) = self.segments.get_mut(at) else {
            return rule.check(None, call.now, call.count, call.reserve);
        };
        let absent = Stored::Absent { fresh_from: segment.fresh_from() };
        let entry = match segment.find(digest) {
            Place::Found(place) => segment.get_mut(place),
            Place::Vacant(_) => None,
        };
        let stored = entry.as_ref().map_or(absent, |entry| Stored::Present(entry.state()));
        let outcome = call.apply(rule, stored.state(rule, call.now));
        if let Some(state) = outcome.write {
            // What was written is what `reset_at` was told of.
            match entry {
                Some(entry) => entry.set(state, outcome.decision.reset_at),
                None => {
                    let Ok(()) = self.write(digest, state, outcome.decision.reset_at, call.now);
                }
            }
        }
        outcome.decision
    }

    /// Takes from all members or from none (without `takes`: only tells). Returns whether all were granted, the latest of the times that settle it,
    /// and each member's decision; see [`tidegate_core::take_all`].
    pub fn take_all(&mut self, members: &[Member<'_>], now: f64, takes: bool) -> (bool, Option<f64>, Vec<Decision>) {
        let mut changes = Vec::new();
        let Ok(all) = plan_all(self, members, now, takes, &mut changes);
        let Ok(()) = carry_out(self, &changes, now);
        all
    }

    /// The limit's two numbers at `now`, of all its shards together.
    #[must_use]
    pub fn value(&self, limit: &Limit, key: Option<&[u8]>, now: f64) -> State {
        let Ok(state) = value(self, limit, key, now);
        state
    }

    /// Forgets the limit: the next call finds it full.
    pub fn reset(&mut self, limit: &Limit, key: Option<&[u8]>) {
        let Ok(()) = reset(self, limit, key);
    }
}
