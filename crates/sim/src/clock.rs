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

/// How much two clocks may drift apart in a ms.
const DRIFT: f64 = 1e-3;

/// The store's clock as a node knows it: the rule of `npm/tidegate/src/stores/server-clock.ts`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerClock {
    known: Option<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The most that it is ahead of the steady clock, ms.
    ahead: f64,
    /// When that was learned, by the steady clock.
    at: f64,
    /// By how many whole ms it is ahead of the wall clock.
    of_wall: f64,
}

impl ServerClock {
    /// Learns from an answer, which came just now, that the store stamped `now` some time after the mark.
    pub fn learn(&mut self, mark: Mark, now: f64, clock: &NodeClock, at: Us) {
        let (most, least) = (now + 1.0 - mark.steady, now - clock.steady(at));
        let of_wall = now - mark.wall;
        let before = self.known.map(|known| Known { ahead: known.most(mark.steady), ..known });
        // Every answer narrows it down; what cannot be any more is from before somebody set a clock.
        let narrower = before.filter(|known| known.ahead > least && known.ahead < most);
        let (ahead, of_wall) = narrower.map_or((most, of_wall), |known| (known.ahead, known.of_wall.min(of_wall)));
        self.known = Some(Known { ahead, at: mark.steady, of_wall });
    }

    /// A quick look, which a clock that is set back puts off; the node's own clock before the first answer.
    #[must_use]
    pub fn usual(&self, clock: &NodeClock, at: Us) -> f64 {
        clock.wall(at) + self.known.map_or(0.0, |known| known.of_wall)
    }

    /// The latest that it can be at the store, whole ms.
    #[must_use]
    pub fn latest(&self, clock: &NodeClock, at: Us) -> f64 {
        let Some(known) = self.known else { return clock.wall(at) };
        let steady = clock.steady(at);
        (clock.wall(at) + known.of_wall).max((steady + known.most(steady)).ceil() - 1.0)
    }
}

impl Known {
    fn most(&self, steady: f64) -> f64 {
        self.ahead + (steady - self.at).max(0.0) * DRIFT
    }
}
