//! The engine as WebAssembly: the table and the algebra behind calls that pass nothing but numbers.
//!
//! Keys are written into this module's memory by the host ([`key_at`]) and looked up there; answers are read from
//! eight doubles ([`numbers_at`]) beside a status word (see [`tidegate_table::wire`]). Nothing here decides.

#![cfg_attr(not(feature = "std"), no_std)]
// Nothing here is unsafe but to name an export. Every other target compiles the same code, and proves it.
#![cfg_attr(target_arch = "wasm32", allow(unsafe_code))]
#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

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
pub use pure::{evaluate, full_at, project, start};
pub use several::{all_clear, all_commit, all_stage, pool_at, pool_decide, pool_pick, pool_value};
pub use tables::{decide, dump, reset, restore, room, stats, table_drop, table_new, value};
