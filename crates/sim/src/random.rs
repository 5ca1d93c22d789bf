//! Random numbers: one stream for each purpose, so that one more draw for one changes nothing for the others.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What random numbers are for.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// When requests arrive, where, and for what.
    Demand = 1,
    /// Delays and losses.
    Network = 2,
    /// Faults.
    Faults = 3,
    /// Which two shards.
    Shards = 4,
    /// Servers and clients of the other experiments.
    Others = 5,
}

/// The random numbers of a seed for one purpose.
#[must_use]
pub fn stream(seed: u64, purpose: Purpose) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose as u64);
    rng
}

/// A number in [0, 1).
pub fn unit(rng: &mut ChaCha8Rng) -> f64 {
    rng.random::<f64>()
}

/// A whole number below `end`.
pub fn below(rng: &mut ChaCha8Rng, end: u64) -> u64 {
    rng.random_range(0..end.max(1))
}
