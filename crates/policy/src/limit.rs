//! A policy of the core with the most tokens that a rule can get from it.

use serde::{Serialize, Serializer};
use tidegate_core::{Bound, Field, Kind, Policy};

/// The limit of a rule or of a tier. It is serialized as `{ config, grantable }`, with the fields of the package's `Config`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The checked policy.
    #[serde(rename = "config", serialize_with = "config")]
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    kind: &'static str,
    rate: f64,
    period: f64,
    capacity: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_reserved: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<f64>,
    shards: f64,
}

fn config<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
    let config = Config {
        kind: match policy.kind() {
            Kind::TokenBucket => "token bucket",
            Kind::FixedWindow => "fixed window",
        },
        rate: policy.rate(),
        period: policy.period(),
        capacity: policy.capacity(),
        max_reserved: Some(policy.max_reserved()).filter(|most| most.is_finite()),
        start: policy.start(),
        shards: f64::from(policy.shards()),
    };
    config.serialize(serializer)
}
