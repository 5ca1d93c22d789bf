//! Tokens that a process takes from a store in advance and spends locally.

use crate::bucket::Bucket;
use crate::decision::{Decision, Outcome};
use crate::number::min;
use crate::state::State;

/// Tokens of a limit that one process has leased, and the state that the store held. A token is either in the store or
/// in one lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    /// The store's state in its last response: the most that it can hold, as long as no tokens are given back.
    pub kept: State,
    /// Leased tokens. They have left the store, so they do not refill.
    pub leased: f64,
}

/// The result of [`Lease::spend`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spending {
    /// Granted from the lease, and the leased tokens that remain.
    Granted(Decision, f64),
    /// Denied: lease and store together cannot hold the count.
    Denied(Decision),
    /// Only the store can decide, since it may hold the missing tokens. The decision is for the case that it does.
    Undecided(Decision),
}

impl Lease {
    /// Takes `count` leased tokens, 0 to 2^40, at `now`, denies, or leaves the decision to the store.
    ///
    /// `now` must be the latest possible reading of the store's clock, ms; then the store denies whatever is denied
    /// here. While the store's value is negative, only leased tokens beyond that debt are spent.
    #[must_use]
    pub fn spend(&self, bucket: &Bucket, now: f64, count: f64) -> Spending {
        if bucket.exceeds_capacity(count, false) {
            return Spending::Denied(Decision::never(now));
        }
        let kept = bucket.refill(Some(self.kept), now);
        let missing = count - self.leased;
        // As `take` computes it: rounded in another order, it could grant what is denied here.
        let after = State { value: kept.value - missing, ts: kept.ts };
        if after.value < 0.0 {
            let Outcome { decision, .. } = bucket.take(Some(self.kept), now, missing, false);
            return Spending::Denied(Decision { value: kept.value + self.leased, ..decision });
        }
        let held = State { value: min(after.value, bucket.capacity), ..after };
        let decision = Decision {
            ok: true,
            value: held.value,
            ts: held.ts,
            retry_at: None,
            reset_at: bucket.full_at(Some(held), now),
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
