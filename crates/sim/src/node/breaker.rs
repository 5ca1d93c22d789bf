//! Whether a node asks a store that keeps failing: the rule of `npm/tidegate/src/resilience.ts`.

use crate::time::{MS, Us};

/// After so many failures in a row, calls no longer wait.
const FAILURES_TO_OPEN: u32 = 5;
/// Between two questions whether it is back, at first and at most.
const PROBE_AFTER: Us = 100 * MS;
const PROBE_AFTER_MOST: Us = 5000 * MS;

/// Counts failures in a row; open, it lets one question through at a time, ever more rarely.
#[derive(Debug)]
pub struct Breaker {
    failures: u32,
    probe_at: Us,
    wait: Us,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker { failures: 0, probe_at: 0, wait: PROBE_AFTER }
    }
}

impl Breaker {
    /// Whether a round trip may begin.
    pub fn admits(&mut self, now: Us) -> bool {
        if self.failures < FAILURES_TO_OPEN {
            return true;
        }
        if now < self.probe_at {
            return false;
        }
        self.probe_at = now + self.wait;
        self.wait = PROBE_AFTER_MOST.min(self.wait * 2);
        true
    }

    /// A round trip ended, in an answer or not.
    pub fn ended(&mut self, answered: bool, now: Us) {
        if answered {
            *self = Breaker::default();
            return;
        }
        self.failures += 1;
        if self.failures == FAILURES_TO_OPEN {
            self.probe_at = now + self.wait;
        }
    }
}
