//! Tokens taken ahead from a store, and spent where they are asked for.

use crate::decision::{Decision, Outcome};
use crate::number::min;
use crate::rule::{MAX_NOW_MS, Rule};
use crate::state::State;

/// What is known of a limit of which some tokens are in hand. [`split_into`](crate::split_into) and
/// [`join`](crate::join) are the same on states: a token is either in the store or in one hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    /// What the store held when it last told: the most that it can hold, as long as nobody brings tokens back.
    pub kept: State,
    /// Tokens in hand: they are out of the store, so they do not refill, and nobody else has them.
    pub hand: f64,
}

/// What a request on a lease comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spending {
    /// Granted out of hand, which then holds so much.
    Granted(Decision, f64),
    /// Denied, because the store cannot hold the rest.
    Denied(Decision),
    /// The store may hold what is missing: it has to be asked. What it would come to if it does.
    Ask(Decision),
}

impl Lease {
    /// Takes `count` tokens out of hand at `now`, or says when they can be taken, or that only the store can tell.
    ///
    /// `now` is the latest that it can be on the store's clock: then a denial is one at the store too. What is owed there
    /// is owed here: while the store is below zero, only what is in hand beyond that is spent.
    #[must_use]
    pub fn spend(&self, rule: &Rule, now: f64, count: f64) -> Spending {
        if rule.exceeds_capacity(count, false) {
            return Spending::Denied(Decision::never(now));
        }
        let kept = rule.refill(Some(self.kept), now);
        let after = State { value: kept.value + self.hand - count, ts: kept.ts };
        if after.value < 0.0 && !Rule::is_broken(self.kept, now) {
            let Outcome { decision, .. } = rule.take(Some(self.kept), now, count - self.hand, false);
            return Spending::Denied(Decision { value: kept.value + self.hand, ..decision });
        }
        let held = State { value: min(after.value, rule.capacity), ..after };
        let reset_at = rule.full_at(Some(held), now);
        let decision = Decision {
            ok: true,
            value: held.value,
            ts: held.ts,
            retry_at: None,
            reset_at: min(reset_at, MAX_NOW_MS),
            reserved: false,
            reason: None,
        };
        if self.hand >= count { Spending::Granted(decision, self.hand - count) } else { Spending::Ask(decision) }
    }
}
