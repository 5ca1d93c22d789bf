//! Reads a state, takes a token and writes it back, each in its own transaction: LMDB and SQLite, set up several ways.
//!
//! `cargo run --release [seconds] [folder]`

mod lmdb;
mod sqlite;

use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::time::{Duration, Instant};
use tidegate_core::{Config, Kind, Policy, Rule};

/// One engine, set up one way.
pub trait Engine {
    /// Takes a token of the key in one transaction; returns whether it was granted.
    fn take(&mut self, key: [u8; 16], rule: &Rule, now: f64) -> bool;
}

const SETUPS: [&str; 7] = [
    "lmdb",
    "lmdb, nosync",
    "lmdb, nosync, writemap",
    "sqlite, page 4096",
    "sqlite, page 1024",
    "sqlite, page 1024, reads first",
    "sqlite, page 1024, full sync",
];

fn open(setup: &str, folder: &Path) -> Box<dyn Engine> {
    if setup.starts_with("lmdb") {
        Box::new(lmdb::Lmdb::open(setup, folder))
    } else {
        Box::new(sqlite::Sqlite::open(setup, folder))
    }
}

/// Spreads numbers over keys as a hash does.
fn key(number: u64) -> [u8; 16] {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (u128::from(mixed ^ mixed >> 29) << 64 | u128::from(number)).to_be_bytes()
}

/// Decisions in `seconds`, and the longest of them in microseconds.
fn measure(engine: &mut dyn Engine, keys: u64, granted: bool, seconds: f64) -> (u64, u128) {
    let capacity = if granted { 1e9 } else { 1.0 };
    let policy =
        Policy::new(&Config { rate: 1.0, period: 1e9, capacity: Some(capacity), ..Config::new(Kind::TokenBucket) });
    let rule = policy.expect("a legal policy").rule(0.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut done, mut seed, mut longest) = (0, u64::from(std::process::id()), 0);
    let mut before = Instant::now();
    while before < end {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        engine.take(key((seed >> 33) % keys), &rule, 1e12 + done as f64 / 1e6);
        let after = Instant::now();
        longest = longest.max((after - before).as_micros());
        before = after;
        done += 1;
    }
    (done, longest)
}

fn child(arguments: &[String]) -> ! {
    let [_, setup, folder, keys, granted, seconds] = arguments else { exit(2) };
    let mut engine = open(setup, Path::new(folder));
    let (done, longest) =
        measure(engine.as_mut(), keys.parse().expect("a number"), granted == "true", seconds.parse().expect("seconds"));
    println!("{done} {longest}");
    exit(0)
}

fn processes(count: usize, setup: &str, folder: &Path, keys: u64, granted: bool, seconds: f64) -> (u64, u64) {
    let run = || {
        Command::new(std::env::current_exe().expect("this program"))
            .args([
                "child",
                setup,
                folder.to_str().expect("a path"),
                &keys.to_string(),
                &granted.to_string(),
                &seconds.to_string(),
            ])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a child")
    };
    let children: Vec<_> = (0..count).map(|_| run()).collect();
    let results = children.into_iter().map(|child| {
        let text = String::from_utf8(child.wait_with_output().expect("its end").stdout).expect("text");
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().expect("a number"));
        (numbers.next().expect("decisions"), numbers.next().expect("the longest"))
    });
    results.fold((0, 0), |(sum, most), (done, longest)| (sum + done, most.max(longest)))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "child") {
        child(&arguments);
    }
    let seconds: f64 = arguments.first().map_or(1.0, |text| text.parse().expect("seconds"));
    let base = arguments.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    println!("decisions a second (the longest, ms)");
    println!(
        "{:<30} {:>18} {:>18} {:>18} {:>18}",
        "", "1 key, granted", "1 key, denied", "100,000 keys", "same, 2 processes"
    );
    for setup in SETUPS {
        print!("{setup:<30}");
        for (count, keys, granted) in [(1, 1, true), (1, 1, false), (1, 100_000, true), (2, 100_000, true)] {
            let folder = base.join(format!("tidegate-engines-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            let (done, longest) = processes(count, setup, &folder, keys, granted, seconds);
            print!(" {:>10.0} ({:>5.1})", done as f64 / seconds, longest as f64 / 1e3);
            std::fs::remove_dir_all(&folder).expect("only this run uses it");
        }
        println!();
    }
}
