//! A policy of the core, and the most tokens that it grants at once.

use crate::algorithm::FIRST;
use serde::{Serialize, Serializer};
use tidegate_core::{FIRST_REQUEST, Field, Policy};

/// The limit of a rule or of a tier. It is serialized as `{ config, grantable }`, with the fields of the package's
/// `Config`.
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
        Limit { policy, grantable: (policy.capacity() + reserved).min(Field::Count.bound().max) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    kind: &'static str,
    rate: f64,
    period: f64,
    capacity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_reserved: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Start>,
    shards: Option<f64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Start {
    Ms(f64),
    Text(&'static str),
}

fn config<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
    let tidegate_core::Config { kind, rate, period, capacity, max_reserved, start, shards } = policy.config();
    let start = start.map(|ms| if ms == FIRST_REQUEST { Start::Text(FIRST) } else { Start::Ms(ms) });
    Config { kind: kind.as_str(), rate, period, capacity, max_reserved, start, shards }.serialize(serializer)
}
