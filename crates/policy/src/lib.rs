//! Rate limits as data: a document of rules, checked as a whole before it is used.
//!
//! A document is `{ "rules": [ … ] }`. A rule has the requests that it applies to (`match`), the parts of the key
//! (`limit_keys`), the tokens that a request takes (`cost`), the limit (`algorithm`, `algorithm_config`, and `tiers` for
//! plans), and how it is enforced (`shadow`, `onStoreError`, `block`). [`Document::parse`] returns named limits with the
//! core's policies, or all mistakes, each with the rule, the path of the field, and what it must be. The ranges of numbers
//! are the core's table.

#![forbid(unsafe_code)]

mod algorithm;
mod cost;
mod descriptor;
mod document;
mod enforcement;
mod fields;
#[cfg(feature = "json")]
mod json;
mod limit;
mod nearest;
mod number;
mod problem;
mod rule;
#[cfg(feature = "json")]
mod schema;
mod tiers;
mod tree;

pub use algorithm::duration_ms;
pub use cost::Cost;
pub use descriptor::{Descriptor, Source};
pub use document::{Checked, Document};
pub use enforcement::{Block, Enforcement, OnStoreError};
pub use fields::MAX_FIELDS;
pub use limit::Limit;
pub use problem::{Problem, Problems};
pub use rule::{Match, Rule};
#[cfg(feature = "json")]
pub use schema::schema;
pub use tiers::{Tier, Tiers};
pub use tree::Tree;

/// The code in README.md runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
