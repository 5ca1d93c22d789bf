//! The algebra twice more, written from its rules and not from `tidegate-core`: [`exact`] in rational numbers without
//! any rounding, and [`naive`] in doubles, in the stated order of operations, with nothing clever in it. What the core
//! answers is compared with both, and the shared test vectors are written from [`naive`] after [`exact`] agreed.

pub mod exact;
pub mod exact_pool;
pub mod history;
pub mod json;
pub mod key;
pub mod limit;
pub mod naive;
pub mod naive_pool;
pub mod random;
pub mod tolerance;
pub mod vectors;

pub use limit::{Kind, Limit};
