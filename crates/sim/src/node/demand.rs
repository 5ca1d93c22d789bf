//! How many tokens a key is asked for at a node: the rule of `npm/tidegate/src/lease/demand.ts`.

use crate::scenario::Lending;

/// From one asking to the next it is let grow by this factor.
const GROWTH: f64 = 8.0;

/// Tokens that were granted here, and how fast.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// Since the store was last asked.
    pub(super) spent: f64,
    since: Option<f64>,
    /// A running mean of tokens in each ms.
    pub(super) per_ms: f64,
}

impl Demand {
    /// Begins to count.
    pub(super) fn begin(&mut self, now: f64) {
        self.since.get_or_insert(now);
    }

    /// How many tokens it takes to go on for a while, by what was spent until `now` and those who wait `need`.
    pub(super) fn ahead(&mut self, lending: &Lending, now: f64, need: f64) -> f64 {
        let spent = self.spent + need;
        let per_ms = spent / (now - self.since.unwrap_or(now)).max(1.0);
        self.per_ms = (self.per_ms + per_ms) / 2.0;
        self.since = Some(now);
        self.spent = 0.0;
        (self.per_ms * lending.ahead).min(GROWTH * spent.max(1.0))
    }
}
