//! Instances that adapt, in front of one server whose capacity drops to a half and comes back.

use hdrhistogram::Histogram;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use serde::{Deserialize, Serialize};
use tidegate_core::{Config, Kind, Policy, State};

use super::aimd::{AdaptiveRate, Settings};
use crate::figures::{jain, rounded};
use crate::queue::Queue;
use crate::random::{Purpose, stream, unit};
use crate::time::{MS, SECOND, Us, shown_ms};

/// How long each of the three phases lasts: all of the capacity, half of it, all of it. The second half of each counts.
pub const PHASE: Us = 60 * SECOND;
/// A request that waits longer than this in front of the server is refused.
const BACKLOG: Us = SECOND;
/// A request that takes longer is a bad one.
const LATENCY: Us = 300 * MS;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Adapted {
    /// Instances, with as much demand each: twice what the server can do, together.
    pub instances: u32,
    /// What a good step adds, as a part of the way from the floor to the ceiling (a hundredth is the default); absent where
    /// rates do not adapt: each has twice its share, and keeps it.
    pub increase: Option<f64>,
    /// In each phase.
    pub phases: Vec<Phase>,
    /// Jain's index of the rates at the end; they began at random, between the floor and the ceiling.
    pub jain: f64,
}

/// What came of one phase.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Phase {
    /// Requests a second that the server can do.
    pub capacity: f64,
    /// What it did in time, beside that.
    pub good: f64,
    /// The part of its requests that was refused or late.
    pub bad: f64,
    /// ms that 99 in 100 of those it did took at the most.
    pub p99_ms: f64,
}

struct Instance {
    rate: Option<AdaptiveRate>,
    fixed: f64,
    state: Option<State>,
}

enum Event {
    Asked(usize),
    Done { instance: usize, request: Option<u64>, sent: Us, failed: bool },
}

struct Counts {
    good: u64,
    bad: u64,
    took: Histogram<u64>,
}

/// Runs `instances` in front of a server of `capacity` requests a second.
#[must_use]
pub fn run(seed: u64, instances: u32, capacity: f64, increase: Option<f64>) -> Adapted {
    let rng = &mut stream(seed, Purpose::Others);
    let share = capacity / f64::from(instances);
    let set = Settings::between(share / 10.0, share * 2.0, LATENCY);
    let set = Settings { increase: increase.unwrap_or_default() * (set.ceiling - set.floor), ..set };
    let start = |rng: &mut ChaCha8Rng| set.floor + unit(rng) * (set.ceiling - set.floor);
    let rate = |rng: &mut ChaCha8Rng| AdaptiveRate::new(set, start(rng), 0);
    let mut all: Vec<_> = (0..instances)
        .map(|_| Instance { rate: increase.map(|_| rate(rng)), fixed: set.ceiling, state: None })
        .collect();
    let gap = Exp::new(2.0 * share / SECOND as f64).expect("a demand");
    let mut counts: Vec<_> =
        (0..3).map(|_| Counts { good: 0, bad: 0, took: Histogram::new(3).expect("three digits") }).collect();
    let mut queue = Queue::new();
    for instance in 0..all.len() {
        queue.put(gap.sample(rng) as Us, Event::Asked(instance));
    }
    let (mut free, mut last) = (0, 0);
    while let Some((now, event)) = queue.take() {
        last = now;
        match event {
            Event::Asked(number) => {
                if now < 3 * PHASE {
                    queue.put(now + 1 + gap.sample(rng) as Us, Event::Asked(number));
                }
                let instance = &mut all[number];
                if !instance.admits(now) {
                    continue;
                }
                let request = instance.rate.as_mut().map(|rate| rate.begin(now));
                let failed = free > now + BACKLOG;
                let end = if failed {
                    now + MS
                } else {
                    free = free.max(now) + (SECOND as f64 / capacity_at(capacity, now)) as Us;
                    free
                };
                queue.put(end, Event::Done { instance: number, request, sent: now, failed });
            }
            Event::Done { instance, request, sent, failed } => {
                if let (Some(rate), Some(request)) = (&mut all[instance].rate, request) {
                    rate.done(request, failed, now);
                }
                let phase = (sent / PHASE) as usize;
                if let Some(counts) = counts.get_mut(phase).filter(|_| sent % PHASE >= PHASE / 2) {
                    counts.count(now - sent, failed);
                }
            }
        }
    }
    let phases = (0..).zip(&counts).map(|(i, counts)| counts.phase(capacity_at(capacity, i * PHASE)));
    let phases = phases.collect();
    let rates = all.iter_mut().map(|instance| instance.rate.as_mut().map_or(instance.fixed, |rate| rate.rate(last)));
    Adapted { instances, increase, phases, jain: rounded(jain(rates)) }
}

fn capacity_at(capacity: f64, at: Us) -> f64 {
    if at / PHASE == 1 { capacity / 2.0 } else { capacity }
}

impl Instance {
    /// The limit that `config()` gives: what is owed stays owed when the rate changes.
    fn admits(&mut self, now: Us) -> bool {
        let rate = self.rate.as_mut().map_or(self.fixed, |rate| rate.rate(now));
        let config = Config { rate, period: 1000.0, capacity: Some(rate.max(1.0)), ..Config::new(Kind::TokenBucket) };
        let rule = Policy::new(&config).expect("a rate between its bounds").rule(0.0);
        let outcome = rule.take(self.state, shown_ms(now, 0).floor(), 1.0, false);
        self.state = outcome.write.or(self.state);
        outcome.decision.ok
    }
}

impl Counts {
    fn count(&mut self, took: Us, failed: bool) {
        if failed || took > LATENCY {
            self.bad += 1;
        } else {
            self.good += 1;
        }
        if !failed {
            self.took.record(took.max(1)).expect("it grows as needed");
        }
    }

    fn phase(&self, capacity: f64) -> Phase {
        let seconds = (PHASE / 2) as f64 / SECOND as f64;
        Phase {
            capacity,
            good: rounded(self.good as f64 / seconds / capacity),
            bad: rounded(self.bad as f64 / (self.good + self.bad).max(1) as f64),
            p99_ms: rounded(self.took.value_at_quantile(0.99) as f64 / 1000.0),
        }
    }
}
