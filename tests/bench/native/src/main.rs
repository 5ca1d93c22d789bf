//! `cargo run --release -p tidegate-bench [-- rounds]`: the core, the table and governor, taking turns in one run.
//!
//! Medians of the rounds with their spread, in nanoseconds per decision, one thread. The machine is noisy: read the ratios.

mod contenders;
mod turns;

use contenders::{Outcome, core, governed, governed_hash_map, shared, table, table_with_clock};
use turns::{Contender, show};

const DEFAULT_ROUNDS: usize = 7;

fn main() {
    let rounds = std::env::args().nth(1).map_or(Ok(DEFAULT_ROUNDS), |given| given.parse());
    let Ok(rounds @ 1..) = rounds else {
        eprintln!("rounds must be an integer from 1");
        std::process::exit(2);
    };
    println!("tidegate-bench {}, medians of {rounds} interleaved rounds (least to most)", env!("CARGO_PKG_VERSION"));
    for outcome in [Outcome::Granted, Outcome::Denied] {
        show(&format!("the algebra alone, {outcome}"), outcome, rounds, vec![core(outcome)]);
        for keys in [1, 100_000] {
            let title = format!("{keys} key{}, {outcome}", if keys == 1 { "" } else { "s" });
            let crew: Vec<Contender> = vec![
                table(keys, outcome),
                table_with_clock(keys, outcome),
                shared(keys, outcome),
                governed(keys, outcome),
                governed_hash_map(keys, outcome),
            ];
            show(&title, outcome, rounds, crew);
        }
    }
}
