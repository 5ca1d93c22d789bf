//! Rate limiting on two numbers.
//!
//! A limit on one key is a [`State`]: `value`, the tokens at `ts`, and `ts` itself. A [`Policy`] and a clock determine the
//! rest. Nothing here reads a clock, keeps a map or allocates: the caller passes the state and the time, and gets a
//! [`Decision`] and, if something was taken, the state to store.
//!
//! ```
//! use tidegate_core::{Config, Kind, Policy};
//!
//! let policy = Policy::new(&Config { rate: 10.0, period: 1000.0, ..Config::new(Kind::TokenBucket) })?;
//! let bucket = policy.bucket(0.0);
//! let first = bucket.take(None, 5_000.0, 10.0, false);
//! assert!(first.decision.ok);
//! let denied = bucket.take(first.write, 5_000.0, 1.0, false);
//! assert_eq!(denied.decision.retry_at, Some(5_100.0)); // exact: granted then, denied one ms before
//! assert_eq!(denied.write, None); // a denial is free
//! # Ok::<(), tidegate_core::InputError>(())
//! ```
//!
//! Every operation is a fixed sequence of IEEE 754 double operations, so any host that evaluates the same sequence
//! (the Lua and SQL renderings do) gets the same bits.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::integer_division_remainder_used
    )
)]

#[cfg(feature = "std")]
extern crate std;

mod block;
mod bounds;
mod bucket;
mod codec;
mod decision;
mod error;
mod fixed_window;
mod identity;
mod kind;
mod lease;
mod number;
mod policy;
mod search;
mod shards;
mod state;
mod take;
mod token_bucket;

pub use bounds::{Bound, FIRST_REQUEST, Field, MAX_NOW_MS, check_count, check_for, check_now};
pub use bucket::{Bucket, MAX_SKEW_MS};
pub use codec::{CorruptState, STATE_BYTES, decode, encode};
pub use decision::{Decision, Outcome, Reason};
pub use error::InputError;
pub use identity::{KEY_EXPECTS, MAX_KEY_BYTES, MAX_NAME_BYTES, NAME_EXPECTS, default_start, is_name, with_identity};
pub use kind::Kind;
pub use lease::{Lease, Spending};
pub use number::JsNumber;
pub use policy::{Config, Policy};
pub use shards::Pool;
pub use state::State;

/// The code in README.md runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
