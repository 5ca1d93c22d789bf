//! Requests: when the next one arrives, at which node, on which key.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, Zipf};

use crate::random::{Purpose, below, stream, unit};
use crate::scenario::Scenario;
use crate::time::{SECOND, Us};

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its number.
    pub id: u64,
    /// When it arrived.
    pub at: Us,
    /// At which node.
    pub node: u32,
    /// On which key.
    pub key: u32,
    /// For how many tokens.
    pub count: f64,
}

/// Draws requests, one after another.
#[derive(Debug)]
pub struct Requests {
    rng: ChaCha8Rng,
    gap: Exp<f64>,
    keys: Zipf<f64>,
    nodes: u32,
    large: f64,
    most: u32,
    /// When the last one arrived, in microseconds and fractions.
    at: f64,
    next: u64,
}

impl Requests {
    /// The requests of a scenario. Panics where its demand is no positive number.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Requests {
        let demand = &scenario.demand;
        Requests {
            rng: stream(scenario.seed, Purpose::Demand),
            gap: Exp::new(demand.per_second / SECOND as f64).expect("a positive demand"),
            keys: Zipf::new(f64::from(scenario.keys), demand.zipf).expect("a law of Zipf's"),
            nodes: scenario.nodes,
            large: demand.large,
            most: demand.most,
            at: 0.0,
            next: 0,
        }
    }

    /// The next request.
    pub fn draw(&mut self) -> Call {
        self.at += self.gap.sample(&mut self.rng);
        let key = self.keys.sample(&mut self.rng) as u32 - 1;
        let node = self.node();
        let count = if self.most > 1 { 1 + below(&mut self.rng, u64::from(self.most)) } else { 1 };
        self.next += 1;
        Call { id: self.next, at: self.at as Us, node, key, count: count as f64 }
    }

    fn node(&mut self) -> u32 {
        if self.large == 0.0 || self.nodes == 1 {
            return below(&mut self.rng, u64::from(self.nodes)) as u32;
        }
        if unit(&mut self.rng) < self.large { 0 } else { 1 + below(&mut self.rng, u64::from(self.nodes - 1)) as u32 }
    }
}
