//! The engine as WebAssembly: the table and the algebra behind calls that pass nothing but numbers.
//!
//! Keys are written into this module's memory by the host ([`key_at`]) and looked up there; answers are read from
//! eight doubles ([`numbers_at`]) beside a status word (see [`tidegate_table::wire`]). Nothing here decides.

#![forbid(unsafe_code)]

mod engine;
mod lease;
mod pure;
mod several;
mod tables;

pub use engine::{key_at, limit_drop, limit_new, numbers_at};
pub use lease::lease_spend;
pub use pure::{evaluate, full_at, project, start};
pub use several::{all_clear, all_commit, all_stage, pool_at, pool_decide, pool_pick, pool_value};
pub use tables::{decide, dump, reset, restore, stats, table_drop, table_new, value};
