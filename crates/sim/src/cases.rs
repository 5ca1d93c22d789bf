//! The scenarios of the report; the tests run the same at a small size.

use crate::scenario::{Demand, Faults, Lending, Limit, Mode, Network, Scenario};

/// The four modes, as the report has them.
pub const MODES: [Mode; 4] =
    [Mode::Exact, Mode::Batch { turn_us: 1_000 }, Mode::Lease(Lending::DEFAULT), Mode::Shards { shards: 8 }];

/// Of all scenarios.
pub const SEED: u64 = 20_240_229;

/// A growing fleet on one set of limits: 100 requests a second arrive at each node, by Zipf's law over `keys` keys of 100
/// tokens a second each.
#[must_use]
pub fn fleet(name: &str, nodes: u32, keys: u32, lasts_ms: u32, mode: Mode) -> Scenario {
    Scenario {
        name: name.into(),
        seed: SEED,
        lasts_ms,
        nodes,
        keys,
        demand: Demand { per_second: 100.0 * f64::from(nodes), zipf: 1.0, large: 0.0, most: 1 },
        limit: Limit::bucket(100.0, 200.0),
        mode,
        network: Network::NEAR,
        faults: Faults::default(),
    }
}

/// One hot key, asked for so many times of what it grants: 100 tokens a second for each node, so that the demand at a node is
/// the same at any size.
#[must_use]
pub fn hot(name: &str, nodes: u32, times: f64, mode: Mode) -> Scenario {
    one_key(fleet(name, nodes, 1, 5_000, mode), 100.0 * f64::from(nodes), times)
}

/// One hot key with few tokens for many nodes: `rate` a second, whatever the number of nodes, asked for `times` as often.
#[must_use]
pub fn scarce(name: &str, nodes: u32, rate: f64, times: f64, mode: Mode) -> Scenario {
    one_key(fleet(name, nodes, 1, 10_000, mode), rate, times)
}

fn one_key(fleet: Scenario, rate: f64, times: f64) -> Scenario {
    Scenario {
        demand: Demand { per_second: rate * times, zipf: 0.0, large: 0.0, most: 1 },
        limit: Limit::bucket(rate, rate / 5.0),
        ..fleet
    }
}

/// One node of a hundred has half of the demand.
#[must_use]
pub fn uneven(name: &str, nodes: u32, mode: Mode) -> Scenario {
    let hot = scarce(name, nodes, 1_000.0, 4.0, mode);
    Scenario { demand: Demand { large: 0.5, ..hot.demand }, ..hot }
}

/// All that goes wrong at once: killed processes, partitions, losses, clocks that are off by a minute, and a store whose
/// own clock is set back by a second.
#[must_use]
pub fn faulty(name: &str, nodes: u32, keys: u32, lasts_ms: u32, mode: Mode) -> Scenario {
    Scenario {
        network: Network { median_us: 500.0, sigma: 1.0, loss: 0.002 },
        faults: Faults {
            crashes: nodes,
            down_ms: 500,
            partitions: nodes,
            cut_ms: 1_000,
            skew_ms: 60_000,
            store_steps_ms: 1_000,
        },
        demand: Demand { per_second: 200.0 * f64::from(nodes), zipf: 1.0, large: 0.0, most: 3 },
        limit: Limit::bucket(300.0, 100.0),
        ..fleet(name, nodes, keys, lasts_ms, mode)
    }
}
