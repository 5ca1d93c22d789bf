//! Rate limits as data: a document of rules, checked whole before anything uses it.
//!
//! A document is `{ "rules": [ … ] }`. A rule says which requests it is about (`match`), whose limit it is
//! (`limit_keys`), what a request takes (`cost`), and the limit itself (`algorithm`, `algorithm_config`, and `tiers` for
//! plans). [`Document::parse`] gives named limits with the core's policies, or every mistake at once, each with the rule,
//! the path of the field, and what it must be. The numbers' ranges are the core's own table.

#![forbid(unsafe_code)]

mod algorithm;
mod cost;
mod descriptor;
mod document;
mod fields;
#[cfg(feature = "json")]
mod json;
mod nearest;
mod plain;
mod problem;
mod rule;
#[cfg(feature = "json")]
mod schema;
mod tiers;
mod tree;

pub use cost::{Cost, grantable};
pub use descriptor::{Descriptor, Source};
pub use document::Document;
pub use fields::MAX_FIELDS;
pub use plain::Plain;
pub use problem::{Problem, Problems};
pub use rule::Rule;
#[cfg(feature = "json")]
pub use schema::schema;
pub use tiers::Tiers;
pub use tree::Tree;

/// The code in README.md runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
