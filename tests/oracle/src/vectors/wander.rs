//! Random histories, for cases that no other vector covers.

use super::TODAY;
use crate::history::History;
use crate::limit::Limit;
use crate::random::Random;

/// The choices of a random history.
#[derive(Clone, Copy)]
pub(crate) struct Wander<'a> {
    /// Operations to choose from; `reserve` is a `take` with `reserve`.
    pub ops: &'a [&'a str],
    /// Counts to choose from.
    pub counts: &'a [f64],
    /// Clock steps to choose from, and lengths of blocks, ms.
    pub steps: &'a [f64],
}

/// So many random histories, on each limit in turn.
pub(crate) fn wanders(limits: &[Limit], histories: u64, calls: usize, how: Wander<'_>) -> Vec<String> {
    (0..histories).map(|seed| wander(seed, limits[seed as usize % limits.len()], calls, how)).collect()
}

/// A history of `calls` random calls. After a denial the next call is sometimes exactly at `retry_at`, or 1 ms before.
pub(crate) fn wander(seed: u64, limit: Limit, calls: usize, how: Wander<'_>) -> String {
    let mut random = Random(seed);
    let mut history = History::new(&format!("at random, {seed}"), limit);
    let mut now = TODAY;
    for _ in 0..calls {
        let count = Some(random.of(how.counts)).filter(|count| *count != 1.0);
        match random.of(how.ops) {
            "project" => history.project(now),
            "reset" => history.reset(now),
            "reserve" => drop(history.step("take", now, count, true)),
            op => {
                let blocks = op == "block";
                let decision = match blocks {
                    true => history.block(now, random.of(how.steps).max(1.0)),
                    false => history.step(op, now, count, false),
                };
                let count = if blocks { None } else { count };
                if let (Some(at), true) = (decision.retry_at, random.below(3) == 0) {
                    if at - 1.0 >= now {
                        history.step("take", at - 1.0, count, false);
                    }
                    history.step("take", at, count, false);
                    now = at;
                }
            }
        }
        now = (now + random.of(how.steps)).clamp(0.0, 4_503_599_627_370_496.0);
    }
    history.finish()
}
