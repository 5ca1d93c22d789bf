//! What is simulated: plain numbers, all of them in the report.

use serde::{Deserialize, Serialize};
use tidegate_core::{Config, InputError, Kind, Policy};

/// One run. Two runs of equal scenarios come to equal figures, to the bit.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Scenario {
    /// What it is called in the report.
    pub name: String,
    /// Of all that is random.
    pub seed: u64,
    /// How long requests arrive, ms.
    pub lasts_ms: u32,
    /// Processes that share the limit.
    pub nodes: u32,
    /// Keys, each with a limit of its own; the first is the hottest.
    pub keys: u32,
    /// Requests.
    pub demand: Demand,
    /// The limit on each key.
    pub limit: Limit,
    /// How nodes use the store.
    pub mode: Mode,
    /// Between the nodes and the store.
    pub network: Network,
    /// What goes wrong.
    pub faults: Faults,
}

/// Requests arrive as a Poisson process, at any node, whatever became of those before.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Demand {
    /// Requests a second, of all nodes together.
    pub per_second: f64,
    /// The exponent of Zipf's law over keys: 0 is even.
    pub zipf: f64,
    /// The part of all requests that arrives at node 0, beyond which all others are alike; 0: all are alike.
    pub large: f64,
    /// A request asks for 1 up to so many tokens.
    pub most: u32,
}

/// The limit on each key.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Limit {
    /// Whether tokens come at once, at the start of each period (a fixed window), or evenly (a token bucket).
    pub windows: bool,
    /// Tokens per period.
    pub rate: f64,
    /// ms.
    pub period: f64,
    /// Most tokens that accumulate.
    pub capacity: f64,
}

/// How nodes use the store.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each call is a round trip and one atomic step.
    Exact,
    /// Calls that a node has within `turn_us` share a round trip, and are one step after another.
    Batch {
        /// Microseconds that a node gathers calls for.
        turn_us: u64,
    },
    /// A node takes tokens ahead: the rule of `npm/tidegate/src/lease`.
    Lease(Lending),
    /// The limit is in parts that live apart: the rule of `npm/tidegate/src/stores/spread.ts`.
    Shards {
        /// How many parts.
        shards: u32,
    },
}

/// The settings of a lease, as `lease: { … }` has them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Lending {
    /// ms of a key's own demand to hold in hand.
    pub ahead: f64,
    /// The most of what the store holds that is taken ahead at once.
    pub share: f64,
    /// ms after which what is in hand is not spent any more.
    pub expiry: f64,
}

/// One way takes a log-normal time, and some messages are lost.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Network {
    /// Median microseconds of one way.
    pub median_us: f64,
    /// Sigma of the logarithm: 0 is always the median.
    pub sigma: f64,
    /// The part of messages that never arrives.
    pub loss: f64,
}

/// What goes wrong, at random times.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Faults {
    /// How many times a node is killed, with all that it has in hand; it is back, empty, after `down_ms`.
    pub crashes: u32,
    /// ms.
    pub down_ms: u32,
    /// How many times a node is cut off from the store, for `cut_ms`.
    pub partitions: u32,
    /// ms.
    pub cut_ms: u32,
    /// Nodes' clocks are ahead or behind by up to so many ms, run up to 0.01 % too fast or slow, and each is set by up
    /// to as many ms once in the run.
    pub skew_ms: u32,
    /// The store's own clock is set back by so many ms after a third of the run, and right again after two thirds.
    pub store_steps_ms: u32,
}

impl Lending {
    /// The defaults of `lease: true`.
    pub const DEFAULT: Lending = Lending { ahead: 200.0, share: 0.5, expiry: 2000.0 };

    /// Another `ahead`, with the `expiry` that goes with it by default.
    #[must_use]
    pub fn ahead(ahead: f64, share: f64) -> Lending {
        Lending { ahead, share, expiry: 10.0 * ahead }
    }
}

impl Network {
    /// A data centre: 250 microseconds one way at the median, 800 at the 99th percentile.
    pub const NEAR: Network = Network { median_us: 250.0, sigma: 0.5, loss: 0.0 };
}

impl Limit {
    /// A token bucket of so many tokens a second.
    #[must_use]
    pub fn bucket(rate: f64, capacity: f64) -> Limit {
        Limit { windows: false, rate, period: 1000.0, capacity }
    }

    /// Its policy in so many shards.
    pub fn policy(&self, shards: u32) -> Result<Policy, InputError> {
        Policy::new(&Config {
            rate: self.rate,
            period: self.period,
            capacity: Some(self.capacity),
            start: self.windows.then_some(0.0),
            shards: Some(f64::from(shards)),
            ..Config::new(if self.windows { Kind::FixedWindow } else { Kind::TokenBucket })
        })
    }

    /// Tokens that come from one instant to a later one, ms: not the core's formula, but what it must agree with.
    #[must_use]
    pub fn earned(&self, from: f64, to: f64) -> f64 {
        let periods = if self.windows {
            (to / self.period).floor() - (from / self.period).floor()
        } else {
            (to - from) / self.period
        };
        self.rate * periods.max(0.0)
    }
}

impl Mode {
    /// What it is called in the report.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Mode::Exact => "exact",
            Mode::Batch { .. } => "batch",
            Mode::Lease(_) => "lease",
            Mode::Shards { .. } => "shards",
        }
    }

    /// How many parts the limit is in.
    #[must_use]
    pub fn shards(&self) -> u32 {
        if let Mode::Shards { shards } = self { *shards } else { 1 }
    }
}
