//! Clocks: a node's own two, and what it makes of the store's.

use crate::time::{Us, shown_ms};

/// A node's clocks: one that somebody may set, and one that only runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeClock {
    /// Microseconds that the first is ahead.
    pub offset: i64,
    /// How much faster both run: parts of one.
    pub drift: f64,
}

impl NodeClock {
    /// Whole ms, as `Date.now()`.
    #[must_use]
    pub fn wall(&self, at: Us) -> f64 {
        (shown_ms(at, self.offset) + self.gained(at)).floor()
    }

    /// ms and fractions, as `performance.now()`.
    #[must_use]
    pub fn steady(&self, at: Us) -> f64 {
        at as f64 / 1000.0 + self.gained(at)
    }

    fn gained(&self, at: Us) -> f64 {
        at as f64 / 1000.0 * self.drift
    }
}

/// The moment before a request leaves, on a node's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    wall: f64,
    steady: f64,
}

impl Mark {
    /// Now.
    #[must_use]
    pub fn new(clock: &NodeClock, at: Us) -> Mark {
        Mark { wall: clock.wall(at), steady: clock.steady(at) }
    }
}

/// The store's clock as a node knows it: the rule of `npm/tidegate/src/stores/server-clock.ts`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerClock {
    ahead: Option<(f64, f64)>,
}

impl ServerClock {
    /// Learns from an answer that the store stamped `now` some time after the mark.
    pub fn learn(&mut self, mark: Mark, now: f64) {
        self.ahead = Some((now + 1.0 - mark.wall, now + 1.0 - mark.steady));
    }

    /// A quick look, which a clock that is set back puts off; the node's own clock before the first answer.
    #[must_use]
    pub fn usual(&self, clock: &NodeClock, at: Us) -> f64 {
        clock.wall(at) + self.ahead.map_or(0.0, |(of_wall, _)| of_wall)
    }

    /// The latest that it can be at the store.
    #[must_use]
    pub fn latest(&self, clock: &NodeClock, at: Us) -> f64 {
        let Some((of_wall, of_steady)) = self.ahead else { return clock.wall(at) };
        (clock.wall(at) + of_wall).max(clock.steady(at) + of_steady).ceil()
    }
}
