//! Tokens that a process took from a store ahead of time, and spends by itself.

use crate::decision::{Decision, Outcome};
use crate::number::min;
use crate::rule::{MAX_NOW_MS, Rule};
use crate::state::State;

/// Tokens of a limit that one process has leased, and the state that the store held. A token is either in the store or in
/// one lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    /// The state of the store when it last answered: the most that it can hold, as long as no tokens are given back.
    pub kept: State,
    /// Leased tokens: they are out of the store, so they do not refill.
    pub leased: f64,
}

/// The decision on a request, where the lease suffices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spending {
    /// Granted from the lease, with the leased tokens that are left.
    Granted(Decision, f64),
    /// Denied, because the store cannot hold the rest.
    Denied(Decision),
    /// Only the store can decide: it may hold what is missing. This is the decision if it does.
    Undecided(Decision),
}

impl Lease {
    /// Takes `count` of the leased tokens at `now`, or denies, or leaves the decision to the store.
    ///
    /// `now` is the latest that it can be on the store's clock: then the store denies what is denied here. While the store
    /// is below zero, only the leased tokens beyond that debt are spent.
    #[must_use]
    pub fn spend(&self, rule: &Rule, now: f64, count: f64) -> Spending {
        if rule.exceeds_capacity(count, false) {
            return Spending::Denied(Decision::never(now));
        }
        let kept = rule.refill(Some(self.kept), now);
        let after = State { value: kept.value + self.leased - count, ts: kept.ts };
        if after.value < 0.0 && !Rule::is_broken(self.kept, now) {
            let Outcome { decision, .. } = rule.take(Some(self.kept), now, count - self.leased, false);
            return Spending::Denied(Decision { value: kept.value + self.leased, ..decision });
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
        if self.leased >= count {
            Spending::Granted(decision, self.leased - count)
        } else {
            Spending::Undecided(decision)
        }
    }
}
