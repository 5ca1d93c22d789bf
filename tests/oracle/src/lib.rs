//! Two more implementations of the algebra, written from its rules and not from `tidegate-core`: [`exact`] in rational
//! numbers without rounding, and [`naive`] in doubles, in the stated order of operations, as simple as possible. The
//! core is compared with both. The shared test vectors are generated from [`naive`], checked against [`exact`].

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
