//! The committed report is what these crates come to, and the README quotes it.

use std::fs;
use std::path::Path;

use tidegate_sim::cases::SEED;
use tidegate_sim::experiments::herd;
use tidegate_sim::readme::with_figures;
use tidegate_sim::report::{Plan, Report, Run, line, summary};

/// Requests of a run that is cheap enough to be run again here.
const CHEAP: f64 = 15_000.0;

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn committed() -> Report {
    serde_json::from_str(&file("report.json")).expect("a report")
}

#[test]
fn a_small_report_is_the_same_to_the_byte_each_time() {
    let plan = Plan::new(10, 1_000);
    let small: Vec<_> = plan.all().filter(|scenario| scenario.demand.per_second < 1_100.0).collect();
    let lines = || small.iter().map(|scenario| line(&Run::of(scenario).expect("a legal limit"))).collect::<Vec<_>>();
    assert!(small.len() > 10);
    assert_eq!(lines(), lines());
}

#[test]
fn the_committed_report_is_what_a_run_comes_to() {
    let report = file("report.json");
    assert_eq!(committed().json(), report, "read and written again");
    let lines: Vec<_> = report.lines().map(|line| line.trim().trim_end_matches(',')).collect();
    let mut again = 0;
    for scenario in Plan::full().all() {
        let of = format!("{{\"scenario\":{},", line(scenario));
        let found = lines.iter().find(|line| line.starts_with(&of)).unwrap_or_else(|| panic!("not reported: {of}"));
        if scenario.demand.per_second * f64::from(scenario.lasts_ms) / 1000.0 < CHEAP {
            assert_eq!(**found, line(&Run::of(scenario).expect("a legal limit")), "run with --report --write");
            again += 1;
        }
    }
    assert!(again > 10, "{again} were run again");
    let windows = |herd: &&herd::Herd| herd.limit.windows;
    for row in committed().herd.iter().filter(windows) {
        assert_eq!(*row, herd::run(SEED, row.limit, row.clients, row.back));
    }
}

#[test]
fn nothing_in_the_committed_report_is_beyond_a_limit() {
    let Report { fleet, hot, scarce, uneven, faulty, sweep, .. } = committed();
    for run in [fleet, hot, scarce, uneven, faulty, sweep].iter().flatten() {
        assert_eq!((run.figures.over_admitted, run.figures.unaccounted), (0.0, 0.0), "{run:?}");
    }
}

#[test]
fn the_readme_quotes_the_committed_report() {
    let readme = file("../../README.md");
    assert_eq!(with_figures(&readme, &summary(&committed())).as_deref(), Ok(readme.as_str()));
}
