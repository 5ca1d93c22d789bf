//! The way between a node and the store.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};

use crate::random::{Purpose, stream, unit};
use crate::scenario::Scenario;
use crate::time::Us;

/// Delays and losses.
#[derive(Debug)]
pub struct Wire {
    rng: ChaCha8Rng,
    delay: LogNormal<f64>,
    loss: f64,
}

impl Wire {
    /// The network of a scenario. Panics where its delay is no positive number.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Wire {
        let network = &scenario.network;
        Wire {
            rng: stream(scenario.seed, Purpose::Network),
            delay: LogNormal::new(network.median_us.ln(), network.sigma).expect("a delay"),
            loss: network.loss,
        }
    }

    /// How long a message is on its way; `None` where it is lost.
    pub fn hop(&mut self) -> Option<Us> {
        let delay = self.delay.sample(&mut self.rng) as Us;
        (!self.loses()).then_some(delay.max(1))
    }

    /// Whether one more message is lost.
    pub fn loses(&mut self) -> bool {
        self.loss > 0.0 && unit(&mut self.rng) < self.loss
    }
}
