//! Demand, grants and denials over time, in bounded memory.

use crate::report::PeakReport;
use std::collections::VecDeque;

/// Most steps kept, about as many as a chart can show.
const STEPS: usize = 512;

/// Tokens of one step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) granted: f64,
    pub(crate) denied: f64,
}

/// Steps of equal width, 1 s at first; the width doubles when there would be too many steps.
pub(crate) struct Series {
    pub(crate) width_ms: f64,
    first: i64,
    steps: VecDeque<Step>,
}

impl Series {
    pub(crate) fn new() -> Series {
        Series { width_ms: 1000.0, first: 0, steps: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, now: f64, count: f64, granted: bool) {
        let mut at = (now / self.width_ms).floor() as i64;
        if self.steps.is_empty() {
            self.first = at;
        }
        while at.max(self.last()) - at.min(self.first) >= STEPS as i64 {
            self.widen();
            at = (now / self.width_ms).floor() as i64;
        }
        while at < self.first {
            self.steps.push_front(Step::default());
            self.first -= 1;
        }
        let place = (at - self.first) as usize;
        if place >= self.steps.len() {
            self.steps.resize(place + 1, Step::default());
        }
        let step = &mut self.steps[place];
        if granted {
            step.granted += count;
        } else {
            step.denied += count;
        }
    }

    fn last(&self) -> i64 {
        self.first + (self.steps.len() as i64 - 1).max(0)
    }

    fn widen(&mut self) {
        self.width_ms *= 2.0;
        let before = std::mem::take(&mut self.steps);
        let first = self.first;
        self.first = first.div_euclid(2);
        for (i, step) in before.into_iter().enumerate() {
            let place = ((first + i as i64).div_euclid(2) - self.first) as usize;
            if place >= self.steps.len() {
                self.steps.push_back(Step::default());
            }
            self.steps[place].granted += step.granted;
            self.steps[place].denied += step.denied;
        }
    }

    /// Start of each step, ms, and its tokens.
    pub(crate) fn steps(&self) -> impl ExactSizeIterator<Item = (f64, Step)> + '_ {
        self.steps.iter().enumerate().map(|(i, step)| ((self.first + i as i64) as f64 * self.width_ms, *step))
    }
}

/// The busiest step of a fixed width.
pub(crate) struct Peak {
    pub(crate) busiest: PeakReport,
    /// The latest steps, at their index modulo the length. A step later than all of them overwrites the oldest.
    latest: Vec<(f64, f64)>,
}

impl Peak {
    pub(crate) fn new(width: f64) -> Peak {
        // Fewer tokens than any step has: requests may cost nothing.
        let busiest = PeakReport { width, at: 0.0, tokens: -1.0 };
        Peak { busiest, latest: vec![(-1.0, 0.0); 4096] }
    }

    pub(crate) fn add(&mut self, now: f64, count: f64) {
        let PeakReport { width, at, tokens: most } = &mut self.busiest;
        let number = (now / *width).floor();
        // Not of the number as `usize`: in WebAssembly that ends in 2106.
        let place = number as u64 % self.latest.len() as u64;
        let (of, tokens) = &mut self.latest[place as usize];
        if *of != number {
            (*of, *tokens) = (number, 0.0);
        }
        *tokens += count;
        if *tokens > *most {
            (*at, *most) = (number * *width, *tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_request_is_lost_and_each_is_in_the_step_of_its_time(
            times in prop::collection::vec(prop_oneof![0u32..5000, 0u32..100_000_000], 1..200)
        ) {
            let mut series = Series::new();
            for now in &times {
                series.add(f64::from(*now), 1.0, now % 2 == 0);
            }
            prop_assert!(series.steps().len() <= STEPS);
            for (at, step) in series.steps() {
                let here = |now: &&u32| f64::from(**now) >= at && f64::from(**now) < at + series.width_ms;
                let even = times.iter().filter(here).filter(|now| *now % 2 == 0).count();
                prop_assert_eq!(step.granted as usize, even);
                prop_assert_eq!(step.denied as usize, times.iter().filter(here).count() - even);
            }
            let all: f64 = series.steps().map(|(_, step)| step.granted + step.denied).sum();
            prop_assert_eq!(all as usize, times.len());
        }
    }

    #[test]
    fn the_width_doubles_only_where_there_would_be_too_many_steps() {
        let now = 1.7e12;
        for (third, width, steps) in [(511.0, 1e3, 512), (512.0, 2e3, 257), (-1.0, 2e3, 257)] {
            let mut series = Series::new();
            for (second, width, steps) in [(0.0, 1e3, 1), (511.0, 1e3, 512), (third, width, steps)] {
                series.add(now + second * 1e3, 1.0, true);
                assert_eq!((series.width_ms, series.steps().len()), (width, steps), "{second} s");
            }
        }
    }

    #[test]
    fn the_busiest_second_is_found_though_lines_come_late() {
        let mut peak = Peak::new(1000.0);
        for now in [0.0, 1000.0, 999.0, 1999.0, 500.0, 1001.0, 1002.0] {
            peak.add(now, 1.0);
        }
        assert_eq!((peak.busiest.at, peak.busiest.tokens), (1000.0, 4.0));
    }
}
