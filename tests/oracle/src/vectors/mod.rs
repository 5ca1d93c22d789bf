//! The shared vectors, one file for each subject.

mod block;
mod clock;
mod config_change;
mod convex;
mod defaults;
mod first_request;
mod fixed_window;
mod invalid;
mod limit_all;
mod operations;
mod precision;
mod reserve;
mod shards;
mod token_bucket;
mod wander;

use crate::json::file;

/// An instant like today's, ms.
pub(crate) const TODAY: f64 = 1_763_640_000_000.0;

/// Each file's name and text.
#[must_use]
pub fn files() -> Vec<(&'static str, String)> {
    vec![
        ("token-bucket.json", file(token_bucket::ABOUT, &token_bucket::vectors())),
        ("fixed-window.json", file(fixed_window::ABOUT, &fixed_window::vectors())),
        ("first-request.json", file(first_request::ABOUT, &first_request::vectors())),
        ("reserve.json", file(reserve::ABOUT, &reserve::vectors())),
        ("clock.json", file(clock::ABOUT, &clock::vectors())),
        ("config-change.json", file(config_change::ABOUT, &config_change::vectors())),
        ("precision.json", file(precision::ABOUT, &precision::vectors())),
        ("shards.json", file(shards::ABOUT, &shards::vectors())),
        ("limit-all.json", file(limit_all::ABOUT, &limit_all::vectors())),
        ("operations.json", file(operations::ABOUT, &operations::vectors())),
        ("block.json", file(block::ABOUT, &block::vectors())),
        ("defaults.json", file(defaults::ABOUT, &defaults::vectors())),
        ("convex.json", file(convex::ABOUT, &convex::vectors())),
        ("invalid.json", file(invalid::ABOUT, &invalid::vectors())),
    ]
}
