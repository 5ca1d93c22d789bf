//! Shards in rational numbers.

use crate::exact::{Exact, MAX_SKEW_MS, State};
use num_rational::BigRational;

/// The shards of one limit at one instant.
#[derive(Debug)]
pub struct ExactShards<'a> {
    /// The whole limit.
    pub whole: Exact,
    /// The stored states.
    pub states: &'a mut [Option<State>],
    /// ms.
    pub now: i128,
}

impl ExactShards<'_> {
    fn part(&self) -> Exact {
        self.whole.part(self.states.len())
    }

    fn sum_of(&self, states: &[Option<State>], t: i128) -> BigRational {
        let part = self.part();
        // A shard without a usable state is full, and stays so until it is written.
        let known = |s: &Option<State>| s.clone().filter(|s| s.ts - self.now <= MAX_SKEW_MS);
        states.iter().map(|s| part.refill(known(s).as_ref(), t).value).sum()
    }

    /// The tokens of all shards.
    #[must_use]
    pub fn sum(&self) -> State {
        let part = self.part();
        let ts = self.states.iter().map(|s| part.refill(s.as_ref(), self.now).ts).max().unwrap_or(self.now);
        State { value: self.sum_of(self.states, self.now), ts }
    }
}
