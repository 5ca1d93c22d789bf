//! The report as tables.

use super::{Report, Run};
use crate::experiments::herd::Back;
use crate::scenario::Mode;

type Column = (&'static str, fn(&Run) -> String);

const WHAT: Column = ("demand", |run| {
    let what = match run.scenario.name.as_str() {
        "fleet" => "a million keys",
        "hot" => "one key, half of what it grants",
        _ => "one key, four times of what it grants",
    };
    what.into()
});
const MODE: Column = ("mode", |run| run.scenario.mode.name().into());
const NODES: Column = ("nodes", |run| whole(f64::from(run.scenario.nodes)));
const UTILIZATION: Column = ("utilization", |run| percent(run.figures.utilization));
const OVER: Column = ("over", |run| tokens(run.figures.over_admitted));
const STEPS: Column = ("steps/s", |run| whole(run.figures.steps_per_second));
const PER_CALL: Column = ("steps a call", |run| format!("{:.2}", run.figures.steps_per_call));
const TRIPS: Column = ("trips/s", |run| whole(run.figures.trips_per_second));
const P50: Column = ("p50, ms", |run| format!("{:.2}", run.figures.wait_p50_ms));
const P99: Column = ("p99, ms", |run| format!("{:.2}", run.figures.wait_p99_ms));
const JAIN: Column = ("Jain", |run| format!("{:.3}", run.figures.jain));
const CHANCE: Column = ("Jain of one bucket", |run| format!("{:.3}", run.figures.jain_ideal));
const HONEST: Column =
    ("retryAt right", |run| if run.figures.denied == 0.0 { "–".into() } else { percent(run.figures.honest) });
const EARLY: Column = ("early", |run| if run.figures.denied == 0.0 { "–".into() } else { percent(run.figures.early) });
const LATE: Column = ("late", |run| if run.figures.denied == 0.0 { "–".into() } else { percent(run.figures.late) });
const DENIED: Column = ("denied", |run| percent(run.figures.denied));
const UNANSWERED: Column = ("unanswered", |run| percent(run.figures.unanswered));
const STRANDED: Column = ("stranded", |run| percent(run.figures.stranded));
const BURST: Column = ("burst", |run| tokens(run.figures.burst));
const LARGE: Column = ("it got", |run| percent(run.figures.large_share));
const SMALL: Column = ("others got", |run| percent(run.figures.small_share));
const DEMAND: Column = ("demand", |run| {
    format!("{}x", (run.scenario.demand.per_second / run.scenario.limit.rate * 100.0).round() / 100.0)
});
const AHEAD: Column = ("ahead, ms", |run| lending(run).0);
const SHARE: Column = ("share", |run| lending(run).1);

fn lending(run: &Run) -> (String, String) {
    let Mode::Lease(lending) = run.scenario.mode else { return ("–".into(), "–".into()) };
    (whole(lending.ahead), lending.share.to_string())
}

/// Columns of words; all others are numbers.
const WORDS: [&str; 5] = ["demand", "mode", "rates", "limit", "a denied client comes back"];

/// All tables.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let fleet =
        [NODES, MODE, OVER, UTILIZATION, STEPS, TRIPS, PER_CALL, P50, P99, DENIED, HONEST, EARLY, LATE, JAIN, CHANCE];
    [
        "## A fleet that grows, on a million keys of 100 tokens a second".into(),
        table(&fleet, &report.fleet),
        "## One hot key whose limit grows along, asked for half of what it grants".into(),
        table(&[NODES, MODE, OVER, UTILIZATION, STEPS, TRIPS, PER_CALL, P50, P99, BURST], &report.hot),
        "## One hot key of 1,000 tokens a second, asked for four times of that".into(),
        table(
            &[NODES, MODE, OVER, UTILIZATION, STEPS, PER_CALL, P50, P99, UNANSWERED, HONEST, EARLY, LATE, JAIN, CHANCE],
            &report.scarce,
        ),
        "## One of a hundred nodes has half of the demand".into(),
        table(&[MODE, LARGE, SMALL, UTILIZATION, STEPS], &report.uneven),
        "## Killed processes, partitions, losses and wrong clocks".into(),
        table(&[MODE, OVER, UTILIZATION, UNANSWERED, STRANDED, BURST, PER_CALL], &report.faulty),
        "## `ahead` and `share` of a lease, 100 nodes on 1,000 tokens a second".into(),
        table(&[DEMAND, AHEAD, SHARE, UTILIZATION, STEPS, PER_CALL, P50, UNANSWERED, JAIN, BURST], &report.sweep),
        "## A rate that adapts".into(),
        adaptive(report),
        "## Clients that come back".into(),
        herd(report, &[Back::AsTold, Back::Jitter(0.5), Back::Jitter(1.0), Back::Reserve]),
    ]
    .join("\n\n")
}

/// The tables that the README quotes.
#[must_use]
pub fn summary(report: &Report) -> String {
    let of = |runs: &[Run], nodes: u32| -> Vec<Run> {
        runs.iter().filter(|run| run.scenario.nodes == nodes).cloned().collect()
    };
    let sizes = [of(&report.fleet, 10_000), of(&report.hot, 1_000), of(&report.scarce, 1_000)].concat();
    [
        table(&[WHAT, NODES, MODE, UTILIZATION, STEPS, PER_CALL, P50, P99, JAIN], &sizes),
        "100 nodes when everything goes wrong, and when one of them has half of the demand:".into(),
        wrong_and_uneven(report),
        "5,000 clients come within a second, for 500 tokens a second:".into(),
        herd(report, &[Back::AsTold, Back::Jitter(0.5), Back::Reserve]),
    ]
    .join("\n\n")
}

/// Both have a row for each mode.
fn wrong_and_uneven(report: &Report) -> String {
    let wrong = [MODE, OVER, UTILIZATION, UNANSWERED, STRANDED];
    let uneven = [LARGE, SMALL];
    let head: Vec<_> = wrong.iter().chain(&uneven).map(|(name, _)| (*name).to_string()).collect();
    let rows = report.faulty.iter().zip(&report.uneven).map(|(one, other)| {
        let cells = wrong.iter().map(|(_, cell)| cell(one));
        cells.chain(uneven.iter().map(|(_, cell)| cell(other))).collect()
    });
    lines(&head, rows)
}

fn adaptive(report: &Report) -> String {
    let head = ["instances", "rates", "Jain", "in time: all of the capacity", "half of it", "all", "bad", "bad", "bad"];
    let rows = report.adaptive.iter().map(|one| {
        let increase = one.increase.map_or("do not adapt".into(), |part| format!("adapt by {}", percent(part)));
        let mut cells = vec![one.instances.to_string(), increase, format!("{:.3}", one.jain)];
        cells.extend(one.phases.iter().map(|phase| percent(phase.good)));
        cells.extend(one.phases.iter().map(|phase| percent(phase.bad)));
        cells
    });
    lines(&head.map(String::from), rows)
}

fn herd(report: &Report, ways: &[Back]) -> String {
    let head =
        ["limit", "a denied client comes back", "retries in 1 ms", "in 100 ms", "questions a token", "all served, s"];
    let rows = report.herd.iter().filter(|one| ways.contains(&one.back)).map(|one| {
        let back = match one.back {
            Back::AsTold => "at `retryAt`".into(),
            Back::Jitter(fraction) => format!("with `jitter`, fraction {fraction}"),
            Back::Reserve => "never: it reserved".into(),
        };
        let kind = if one.limit.windows { "fixed window" } else { "token bucket" };
        let numbers = [f64::from(one.peak_1_ms), f64::from(one.peak_100_ms)].map(whole);
        let [ms, tenth] = numbers;
        vec![kind.into(), back, ms, tenth, format!("{:.1}", one.asked_per_grant), format!("{:.1}", one.done_s)]
    });
    lines(&head.map(String::from), rows)
}

fn table(columns: &[Column], runs: &[Run]) -> String {
    let head: Vec<_> = columns.iter().map(|(name, _)| (*name).to_string()).collect();
    lines(&head, runs.iter().map(|run| columns.iter().map(|(_, cell)| cell(run)).collect()))
}

fn lines(head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let row = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let rule: Vec<_> =
        head.iter().map(|name| if WORDS.contains(&name.as_str()) { "---" } else { "---:" }.into()).collect();
    let rows = rows.map(|cells| row(&cells));
    [row(head), row(&rule)].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn tokens(count: f64) -> String {
    if count == 0.0 { "0".into() } else { format!("{count:.1}") }
}

/// A whole number with commas.
fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
