//! The report: every run at full size, as JSON and as Markdown.

mod markdown;

use serde::{Deserialize, Serialize};
use tidegate_core::InputError;

use crate::cases::{self, MODES, SEED};
use crate::experiments::adaptive::{self, Adapted};
use crate::experiments::herd::{self, Back, Herd};
use crate::figures::Figures;
use crate::scenario::{Lending, Limit, Mode, Scenario};
use crate::world;

pub use markdown::{markdown, summary};

/// A scenario, and what came of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Run {
    /// What was simulated.
    pub scenario: Scenario,
    /// What came of it.
    pub figures: Figures,
}

/// All that is reported.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Report {
    /// A growing fleet on a million keys: [`cases::fleet`].
    pub fleet: Vec<Run>,
    /// A hot key whose limit grows with the fleet: [`cases::hot`].
    pub hot: Vec<Run>,
    /// A hot key with a thousand tokens a second for a growing fleet: [`cases::scarce`].
    pub scarce: Vec<Run>,
    /// One node with half of the demand: [`cases::uneven`].
    pub uneven: Vec<Run>,
    /// All faults at once: [`cases::faulty`].
    pub faulty: Vec<Run>,
    /// Settings of the lease, on few tokens for many nodes.
    pub sweep: Vec<Run>,
    /// Rates that adapt.
    pub adaptive: Vec<Adapted>,
    /// Clients that come back.
    pub herd: Vec<Herd>,
}

/// The scenarios of a report whose largest fleet has so many nodes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// See [`Report`].
    pub fleet: Vec<Scenario>,
    /// See [`Report`].
    pub hot: Vec<Scenario>,
    /// See [`Report`].
    pub scarce: Vec<Scenario>,
    /// See [`Report`].
    pub uneven: Vec<Scenario>,
    /// See [`Report`].
    pub faulty: Vec<Scenario>,
    /// See [`Report`].
    pub sweep: Vec<Scenario>,
}

impl Plan {
    /// The plan of a report at full size: 10,000 nodes and a million keys.
    #[must_use]
    pub fn full() -> Plan {
        Plan::new(10_000, 1_000_000)
    }

    /// All scenarios.
    pub fn all(&self) -> impl Iterator<Item = &Scenario> {
        [&self.fleet, &self.hot, &self.scarce, &self.uneven, &self.faulty, &self.sweep].into_iter().flatten()
    }

    /// A plan with fleets of up to `most` nodes on `keys` keys.
    #[must_use]
    pub fn new(most: u32, keys: u32) -> Plan {
        let sizes: Vec<u32> = [1, 10, 100, 1_000, 10_000].into_iter().filter(|&nodes| nodes <= most).collect();
        let each = |of: &dyn Fn(u32, Mode) -> Scenario| -> Vec<Scenario> {
            sizes.iter().flat_map(|&nodes| MODES.map(|mode| of(nodes, mode))).collect()
        };
        let some = 100.min(most);
        Plan {
            // Fewer seconds for more nodes: about as many requests.
            fleet: each(&|nodes, mode| {
                cases::fleet("fleet", nodes, keys, if nodes > 1_000 { 1_000 } else { 10_000 }, mode)
            }),
            hot: each(&|nodes, mode| Scenario {
                lasts_ms: if nodes > 1_000 { 1_000 } else { 5_000 },
                ..cases::hot("hot", nodes, 0.5, mode)
            }),
            scarce: each(&|nodes, mode| cases::scarce("scarce", nodes, 1_000.0, 4.0, mode)),
            uneven: MODES.map(|mode| cases::uneven("uneven", some, mode)).into(),
            faulty: MODES.map(|mode| cases::faulty("faulty", some, keys.min(10_000), 10_000, mode)).into(),
            sweep: sweep(some),
        }
    }
}

/// `ahead` and `share`, for a key that is asked for a little less than it grants, a little more, and far more.
fn sweep(nodes: u32) -> Vec<Scenario> {
    let mut all = Vec::new();
    for times in [0.9, 1.25, 4.0] {
        for ahead in [20.0, 50.0, 200.0, 1_000.0] {
            for share in [0.1, 0.5, 1.0] {
                all.push(cases::scarce("sweep", nodes, 1_000.0, times, Mode::Lease(Lending::ahead(ahead, share))));
            }
        }
    }
    all
}

impl Run {
    /// Runs a scenario.
    pub fn of(scenario: &Scenario) -> Result<Run, InputError> {
        Ok(Run { scenario: scenario.clone(), figures: world::run(scenario)? })
    }
}

impl Report {
    /// Runs a plan, and tells of each run that begins. The error is that of a limit which is out of range.
    pub fn of(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<Report, InputError> {
        let mut all = |scenarios: &[Scenario]| -> Result<Vec<Run>, InputError> {
            let run = |scenario: &Scenario| {
                tell(&format!("{}, {} nodes, {}", scenario.name, scenario.nodes, scenario.mode.name()));
                Run::of(scenario)
            };
            scenarios.iter().map(run).collect()
        };
        Ok(Report {
            fleet: all(&plan.fleet)?,
            hot: all(&plan.hot)?,
            scarce: all(&plan.scarce)?,
            uneven: all(&plan.uneven)?,
            faulty: all(&plan.faulty)?,
            sweep: all(&plan.sweep)?,
            adaptive: [(2, DEFAULT), (2, LARGE), (10, DEFAULT), (10, LARGE), (100, DEFAULT), (100, LARGE), (10, None)]
                .map(|(instances, increase)| adaptive::run(SEED, instances, 1_000.0, increase))
                .into(),
            herd: herds(),
        })
    }

    /// As it is committed: a run a line, so that a change shows where it is.
    #[must_use]
    pub fn json(&self) -> String {
        let tables = [
            table("fleet", &self.fleet),
            table("hot", &self.hot),
            table("scarce", &self.scarce),
            table("uneven", &self.uneven),
            table("faulty", &self.faulty),
            table("sweep", &self.sweep),
            table("adaptive", &self.adaptive),
            table("herd", &self.herd),
        ];
        format!("{{\n{}\n}}\n", tables.join(",\n"))
    }
}

/// A line of the report.
#[must_use]
pub fn line(row: &impl Serialize) -> String {
    serde_json::to_string(row).expect("plain numbers")
}

fn table(name: &str, rows: &[impl Serialize]) -> String {
    let rows: Vec<_> = rows.iter().map(|row| format!("    {}", line(row))).collect();
    format!("  \"{name}\": [\n{}\n  ]", rows.join(",\n"))
}

/// The default of `increase`, and five times as much.
const DEFAULT: Option<f64> = Some(0.01);
const LARGE: Option<f64> = Some(0.05);

/// A fixed window and a token bucket of equal rates.
fn herds() -> Vec<Herd> {
    let window = Limit { windows: true, rate: 500.0, period: 1000.0, capacity: 500.0 };
    let bucket = Limit::bucket(500.0, 500.0);
    let ways = [Back::AsTold, Back::Jitter(0.5), Back::Jitter(1.0), Back::Reserve];
    [window, bucket].iter().flat_map(|&limit| ways.map(|back| herd::run(SEED, limit, 5_000, back))).collect()
}
