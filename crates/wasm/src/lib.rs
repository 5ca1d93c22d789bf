//! The engine as WebAssembly: the table and the algebra behind functions of numbers.
//!
//! The host writes keys into this module's memory ([`key_at`]). A call returns a status word and leaves eight doubles
//! in memory ([`numbers_at`]): see [`tidegate_wire`]. The decisions are those of the core and the table.
//!
//! The functions are exported by wasm-bindgen, and the package calls the raw exports: numbers need no glue.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(not(feature = "std"))]
mod bare;
mod engine;
mod lease;
mod pure;
mod several;
mod tables;

pub use engine::{key_at, limit_drop, limit_new, numbers_at};
pub use lease::lease_spend;
pub use pure::{evaluate, start};
pub use several::{all_clear, all_commit, all_stage, pool_at, pool_decide};
pub use tables::{decide, dump, reset, restore, room, stats, table_drop, table_new};
