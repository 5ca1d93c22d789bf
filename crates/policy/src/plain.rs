//! A checked document as plain data, for hosts that are not Rust.

use crate::cost::Cost;
use crate::descriptor::Descriptor;
use crate::document::Document;
use crate::problem::{Problem, Problems};
use crate::rule::Rule;
use serde::Serialize;
use tidegate_core::{Kind, Policy};

/// What a check says: the rules, or the problems.
#[derive(Debug, Serialize)]
pub struct Plain {
    rules: Vec<PlainRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<PlainRule>,
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct PlainRule {
    name: String,
    keys: Vec<Descriptor>,
    matches: Vec<PlainMatch>,
    cost: Cost,
    reserve: bool,
    limit: PlainLimit,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiers: Option<PlainTiers>,
}

#[derive(Debug, Serialize)]
struct PlainMatch {
    at: Descriptor,
    equals: String,
}

#[derive(Debug, Serialize)]
struct PlainTiers {
    by: Descriptor,
    settings: Vec<PlainTier>,
}

#[derive(Debug, Serialize)]
struct PlainTier {
    name: String,
    limit: PlainLimit,
}

/// The fields of the package's `Config`, and the most that the limit ever grants.
#[derive(Debug, Serialize)]
struct PlainLimit {
    config: PlainConfig,
    grantable: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainConfig {
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

fn limit(policy: &Policy, reserve: bool) -> PlainLimit {
    let kind = match policy.kind() {
        Kind::TokenBucket => "token bucket",
        Kind::FixedWindow => "fixed window",
    };
    let config = PlainConfig {
        kind,
        rate: policy.rate(),
        period: policy.period(),
        capacity: policy.capacity(),
        max_reserved: Some(policy.max_reserved()).filter(|most| most.is_finite()),
        start: policy.start(),
        shards: f64::from(policy.shards()),
    };
    PlainLimit { config, grantable: crate::cost::grantable(policy, reserve) }
}

fn rule(rule: &Rule) -> PlainRule {
    let matches = rule.matches.iter().map(|(at, equals)| PlainMatch { at: at.clone(), equals: equals.clone() });
    let tiers = rule.tiers.as_ref().map(|tiers| PlainTiers {
        by: tiers.by.clone(),
        settings: tiers
            .settings
            .iter()
            .map(|(name, policy)| PlainTier { name: name.clone(), limit: limit(policy, rule.reserve) })
            .collect(),
    });
    PlainRule {
        name: rule.name.clone(),
        keys: rule.keys.clone(),
        matches: matches.collect(),
        cost: rule.cost.clone(),
        reserve: rule.reserve,
        limit: limit(&rule.policy, rule.reserve),
        tiers,
    }
}

impl From<Result<Document, Problems>> for Plain {
    fn from(checked: Result<Document, Problems>) -> Plain {
        match checked {
            Ok(document) => Plain {
                rules: document.rules.iter().map(rule).collect(),
                fallback: document.fallback.as_ref().map(rule),
                problems: Vec::new(),
            },
            Err(Problems(problems)) => Plain { rules: Vec::new(), fallback: None, problems },
        }
    }
}
