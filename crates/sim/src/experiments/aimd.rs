//! A rate that follows the health of what it protects. `tidegate/adaptive` is the only rendering of this rule; here it is
//! once more, after its documentation: additive increase, multiplicative decrease, one step at a time.

use std::collections::BTreeMap;

use crate::time::{SECOND, Us};

/// Settings, with the names that `adaptiveRate` gives them. Rates are tokens a second.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Least rate.
    pub floor: f64,
    /// Most.
    pub ceiling: f64,
    /// A request that takes longer is a bad one.
    pub latency: Us,
    /// The share of bad requests that is no reason to slow down.
    pub tolerance: f64,
    /// What a good step adds.
    pub increase: f64,
    /// What a bad step multiplies the rate by.
    pub decrease: f64,
    /// How long a step takes.
    pub every: Us,
}

/// The rate of one instance.
#[derive(Debug)]
pub struct AdaptiveRate {
    set: Settings,
    rate: f64,
    step_at: Us,
    /// Requests on their way, in the order in which they were sent, and when.
    sent: BTreeMap<u64, Us>,
    next: u64,
    tokens: f64,
    ended: u64,
    bad: u64,
}

impl Settings {
    /// The defaults, between a floor and a ceiling.
    #[must_use]
    pub fn between(floor: f64, ceiling: f64, latency: Us) -> Settings {
        let increase = (ceiling - floor) / 100.0;
        Settings { floor, ceiling, latency, tolerance: 0.1, increase, decrease: 0.7, every: SECOND }
    }
}

impl AdaptiveRate {
    /// Begins at a rate.
    #[must_use]
    pub fn new(set: Settings, start: f64, now: Us) -> AdaptiveRate {
        AdaptiveRate { set, rate: start, step_at: now, sent: BTreeMap::new(), next: 0, tokens: 0.0, ended: 0, bad: 0 }
    }

    /// Tokens a second, as of now.
    pub fn rate(&mut self, now: Us) -> f64 {
        self.step(now);
        self.rate
    }

    /// A request is sent; what comes back ends it.
    pub fn begin(&mut self, now: Us) -> u64 {
        self.step(now);
        self.next += 1;
        self.sent.insert(self.next, now);
        self.tokens += 1.0;
        self.next
    }

    /// A request ended.
    pub fn done(&mut self, request: u64, failed: bool, now: Us) {
        self.step(now);
        let Some(at) = self.sent.remove(&request) else { return };
        self.ended += 1;
        if failed || now - at > self.set.latency {
            self.bad += 1;
        }
    }

    fn step(&mut self, now: Us) {
        let lasted = now - self.step_at;
        if lasted < self.set.every {
            return;
        }
        self.count_late(now);
        if self.bad as f64 > self.set.tolerance * self.ended as f64 {
            self.rate = self.set.floor.max(self.rate * self.set.decrease);
            // They tell of a rate that is gone.
            self.sent.clear();
        } else if self.ended > 0 && self.tokens >= self.rate * lasted as f64 / SECOND as f64 / 2.0 {
            self.rate = self.set.ceiling.min(self.rate + self.set.increase);
        }
        self.step_at = now;
        (self.tokens, self.ended, self.bad) = (0.0, 0, 0);
    }

    fn count_late(&mut self, now: Us) {
        while let Some(first) = self.sent.first_entry().filter(|first| now - first.get() > self.set.latency) {
            first.remove();
            self.ended += 1;
            self.bad += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps that the README's example of `adaptiveRate` prints.
    #[test]
    fn it_goes_as_the_example_in_the_readme() {
        let ms = 1_000;
        let set = Settings::between(5.0, 205.0, 300 * ms);
        let mut upstream = AdaptiveRate::new(set, 50.0, 0);
        // 40 tokens in one request there.
        let requests: Vec<_> = (0..40).map(|_| upstream.begin(0)).collect();
        for request in requests {
            upstream.done(request, false, 0);
        }
        assert_eq!(upstream.rate(1_000 * ms), 52.0);
        let late = upstream.begin(1_000 * ms);
        upstream.done(late, false, 1_301 * ms);
        assert_eq!(upstream.rate(2_301 * ms), 36.4);
    }
}
