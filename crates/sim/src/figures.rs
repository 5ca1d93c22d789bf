//! What comes of a run: the figures of the report.

use serde::{Deserialize, Serialize};

use crate::meter::HAIR;
use crate::scenario::Scenario;
use crate::tally::{Hot, Tally};

/// What came of a run. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Figures {
    /// Calls that arrived.
    pub calls: u64,
    /// The part of them that was granted.
    pub granted: f64,
    /// The part of them that was denied by what the store holds.
    pub denied: f64,
    /// The part of them that the store did not answer in time, or whose process was killed.
    pub unanswered: f64,
    /// Tokens beyond the limit: of steps at the store in any span, and of grants since the beginning; of each shard by itself,
    /// where there are several. 0 is the promise.
    pub over_admitted: f64,
    /// The same of all shards together. 0 as long as the store's clock is not set back: each shard has a `ts` of its own, and
    /// one that was not asked for a while earns in the time that comes a second time.
    pub over_together: f64,
    /// The most tokens that callers heard of in any span beyond `capacity + rate x time`: what was in hand, or on its way.
    pub burst: f64,
    /// Tokens granted, beside what one bucket in one place would have granted to the same calls.
    pub utilization: f64,
    /// Of the tokens that left the store: the part that nobody ever had.
    pub stranded: f64,
    /// Tokens that left the store for good, less granted, stranded and in hand: 0, or tokens came from nowhere.
    pub unaccounted: f64,
    /// Jain's index of what nodes were granted of what they asked for on the hottest key.
    pub jain: f64,
    /// The same of one bucket in one place: what chance alone makes of it.
    pub jain_ideal: f64,
    /// What a large node (node 0) and what all others were granted of what they asked for on the hottest key.
    pub large_share: f64,
    /// See `large_share`.
    pub small_share: f64,
    /// Round trips to the store a second.
    pub trips_per_second: f64,
    /// Atomic steps at the store a second.
    pub steps_per_second: f64,
    /// Atomic steps for each call.
    pub steps_per_call: f64,
    /// Denials whose time was right when it was heard: granted then, denied one ms before, if nobody else took any more.
    pub honest: f64,
    /// Denials that would still be denied then.
    pub early: f64,
    /// Denials that would have been granted before.
    pub late: f64,
    /// Milliseconds that half of the calls waited for their answer at the most.
    pub wait_p50_ms: f64,
    /// The same of 99 in 100.
    pub wait_p99_ms: f64,
}

/// Jain's index: 1 where all have the same, 1/n where one has all; 1 of none.
#[must_use]
pub fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        n += 1.0;
        sum += share;
        squares += share * share;
    }
    if squares == 0.0 { 1.0 } else { sum * sum / (n * squares) }
}

/// Four digits after the point: more would be of no meaning.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    // Adding 0 makes -0 a 0.
    (value * 1e4).round() / 1e4 + 0.0
}

fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { rounded(a / b) }
}

fn beyond(tokens: f64) -> f64 {
    if tokens > HAIR { rounded(tokens) } else { 0.0 }
}

impl Figures {
    /// The figures of a run that has ended, with so many tokens in hand.
    #[must_use]
    pub fn of(scenario: &Scenario, tally: &Tally, in_hand: f64) -> Figures {
        let seconds = f64::from(scenario.lasts_ms) / 1000.0;
        let calls = tally.asked as f64;
        let denials = (tally.exact + tally.early + tally.late) as f64;
        let asked = || tally.hot.iter().filter(|hot| hot.asked > 0.0);
        let share = |nodes: &[Hot]| {
            let sum = |of: fn(&Hot) -> f64| nodes.iter().map(of).sum();
            ratio(sum(|hot| hot.granted), sum(|hot| hot.asked))
        };
        let (large, small) = tally.hot.split_at(1);
        let left = tally.taken - tally.given - tally.tokens - tally.stranded - in_hand;
        Figures {
            calls: tally.asked,
            granted: ratio(tally.granted as f64, calls),
            denied: ratio(tally.denied as f64, calls),
            unanswered: ratio((tally.failed + tally.cut_off) as f64, calls),
            over_admitted: beyond(tally.over),
            over_together: beyond(tally.over_together),
            burst: beyond(tally.burst),
            utilization: ratio(tally.tokens, tally.ideal),
            stranded: ratio(tally.stranded, tally.taken),
            unaccounted: if left.abs() < HAIR { 0.0 } else { rounded(left) },
            jain: rounded(jain(asked().map(|hot| hot.granted / hot.asked))),
            jain_ideal: rounded(jain(asked().map(|hot| hot.ideal / hot.asked))),
            large_share: share(large),
            small_share: share(small),
            trips_per_second: rounded(tally.trips as f64 / seconds),
            steps_per_second: rounded(tally.steps as f64 / seconds),
            steps_per_call: ratio(tally.steps as f64, calls),
            honest: ratio(tally.exact as f64, denials),
            early: ratio(tally.early as f64, denials),
            late: ratio(tally.late as f64, denials),
            wait_p50_ms: tally.wait.value_at_quantile(0.5) as f64 / 1000.0,
            wait_p99_ms: tally.wait.value_at_quantile(0.99) as f64 / 1000.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equals_and_an_nth_for_one_who_has_all() {
        assert_eq!(jain([3.0; 7].into_iter()), 1.0);
        assert_eq!(jain([5.0, 0.0, 0.0, 0.0].into_iter()), 0.25);
        assert_eq!(jain(std::iter::empty()), 1.0);
        assert_eq!(rounded(-0.00001).to_bits(), 0.0_f64.to_bits());
    }
}
