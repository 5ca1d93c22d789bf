//! The in-memory store: maps an identity to its state.
//!
//! * Bounded by `max_keys`. When there is no room, or no memory for a larger segment, the fullest state of a bounded
//!   sample is evicted: the one with the least `full_at`. So keys that are full before a debtor do not evict it, while
//!   debtors are at most half of the table; if they are nine tenths, a long flood evicts a few percent of them. Keys that
//!   are full as late do evict it. Evictions of states that were not full are counted in [`Stats::evicted`].
//! * A state past its `full_at` is dropped when its segment is next rebuilt or needs room: there are no timers and no
//!   sweep. The table grows one small segment at a time, so there is no pause at any size. A clock that steps back
//!   afterwards gains nothing: see [`Bucket::absent`](tidegate_core::Bucket::absent).
//! * A key is stored as a keyed 128-bit hash (SipHash-1-3 with a secret per table): 32 bytes per key of any
//!   length. The probability that any two of 10^9 keys collide is below 10^-20, and collisions cannot be engineered
//!   without the secret.
//!
//! ```
//! use tidegate_core::{Config, Kind, Policy};
//! use tidegate_table::{Call, Limit, Table};
//!
//! let mut table = Table::new(1_000_000, [1, 2]); // the secret: random, from the host
//! let policy = Policy::new(&Config { rate: 1.0, period: 1000.0, ..Config::new(Kind::TokenBucket) })?;
//! let limit = Limit::new(table.secret(), "login", policy);
//! assert!(table.decide(&limit, Some(b"ann"), Call::at(0.0)).ok);
//! assert!(!table.decide(&limit, Some(b"ann"), Call::at(999.0)).ok);
//! assert!(table.decide(&limit, Some(b"ann"), Call::at(1000.0)).ok);
//! # Ok::<(), tidegate_core::InputError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod call;
mod dump;
mod limit;
mod packed;
mod segment;
#[cfg(feature = "std")]
mod shared;
#[cfg(feature = "std")]
mod sync;
mod table;

pub use call::{All, Call, Change, Member, Op, States, Stored, plan, plan_all};
pub use dump::{CorruptDump, checksum};
pub use limit::{Digest, Limit};
#[cfg(feature = "std")]
pub use shared::SharedTable;
pub use table::{Stats, Table};

/// The code in README.md runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
