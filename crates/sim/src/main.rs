//! `tidegate-sim --report`: every run at full size. Without it: one run, as the options say.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use tidegate_sim::cases::{self, MODES};
use tidegate_sim::report::{Plan, Report, markdown, summary};
use tidegate_sim::scenario::{Demand, Limit, Scenario};
use tidegate_sim::world;

/// Simulates a fleet of nodes on shared limits. The same options always print the same figures.
#[derive(Parser)]
struct Options {
    /// Runs the whole report, and prints it as Markdown.
    #[arg(long)]
    report: bool,
    /// Prints JSON instead.
    #[arg(long)]
    json: bool,
    /// With --report: writes crates/sim/report.json, and what the README quotes of it.
    #[arg(long, requires = "report")]
    write: bool,
    /// One run: exact, batch, lease or shards.
    #[arg(long, default_value = "lease")]
    mode: String,
    /// Processes that share the limits.
    #[arg(long, default_value_t = 100)]
    nodes: u32,
    /// Keys, each with a limit of its own.
    #[arg(long, default_value_t = 1)]
    keys: u32,
    /// The exponent of Zipf's law over keys.
    #[arg(long, default_value_t = 1.0)]
    zipf: f64,
    /// Requests a second, of all nodes together.
    #[arg(long, default_value_t = 4_000.0)]
    demand: f64,
    /// Tokens a second on each key.
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// Most tokens that accumulate.
    #[arg(long, default_value_t = 200.0)]
    capacity: f64,
    /// How long requests arrive.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// All that goes wrong, at once.
    #[arg(long)]
    faults: bool,
    /// Of all that is random.
    #[arg(long, default_value_t = cases::SEED)]
    seed: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if options.report { report(&options) } else { one(&options) }
}

fn one(options: &Options) -> Result<(), Box<dyn Error>> {
    let known = MODES.into_iter().find(|mode| mode.name() == options.mode);
    let mode = known.ok_or_else(|| format!("--mode must be exact, batch, lease or shards; got {}", options.mode))?;
    let positive = |number: f64| number.is_finite() && number > 0.0;
    if !positive(options.demand) || !options.zipf.is_finite() || options.zipf < 0.0 {
        return Err("--demand must be above 0, and --zipf 0 or more".into());
    }
    if options.nodes == 0 || options.keys == 0 || options.seconds == 0 || options.seconds > 86_400 {
        return Err("--nodes and --keys must be 1 or more, and --seconds from 1 to 86,400".into());
    }
    let lasts_ms = options.seconds * 1000;
    let of = if options.faults { cases::faulty } else { cases::fleet };
    let scenario = of("one", options.nodes, options.keys, lasts_ms, mode);
    let scenario = Scenario {
        seed: options.seed,
        demand: Demand { per_second: options.demand, zipf: options.zipf, ..scenario.demand },
        limit: Limit::bucket(options.rate, options.capacity),
        ..scenario
    };
    let figures = world::run(&scenario)?;
    println!("{}", serde_json::to_string_pretty(&figures)?);
    Ok(())
}

fn report(options: &Options) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let report = Report::of(&Plan::full(), &mut |run| eprintln!("{:>6.1} s  {run}", began.elapsed().as_secs_f64()))?;
    eprintln!("{:>6.1} s  done", began.elapsed().as_secs_f64());
    if options.write {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        fs::write(folder.join("report.json"), report.json())?;
        let readme = folder.join("../../README.md");
        fs::write(&readme, tidegate_sim::readme::with_figures(&fs::read_to_string(&readme)?, &summary(&report))?)?;
    }
    println!("{}", if options.json { report.json() } else { markdown(&report) });
    Ok(())
}
