//! A policy of the core, and the most tokens that it grants at once.

use tidegate_core::{Bound, Field, Policy};

/// The limit of a rule or of a tier.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The checked policy.
    pub policy: Policy,
    /// The most tokens that the limit ever grants at once, with what the rule may reserve.
    pub grantable: f64,
}

impl Limit {
    pub(crate) fn new(policy: Policy, reserve: bool) -> Limit {
        let reserved = if reserve { policy.max_reserved() } else { 0.0 };
        Limit { policy, grantable: (policy.capacity() + reserved).min(Bound::of(Field::Count).max) }
    }
}
