//! Contenders take turns, A B C A B C …, so that noise of the machine affects all of them.

use crate::contenders::Outcome;
use cpu_time::ThreadTime;
use std::time::Duration;

const BATCH: usize = 10_000;
const TURN: Duration = Duration::from_millis(100);

/// A contender: its name, and a step that makes the given number of calls and returns how many were granted.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Calls until every key exists and, if it is to be denied, is spent.
    pub(crate) fill: usize,
    pub(crate) step: Box<dyn FnMut(usize) -> usize>,
}

impl Contender {
    /// Nanoseconds per call over one turn, of the thread's CPU time: other processes do not lengthen them.
    fn turn(&mut self, outcome: Outcome) -> f64 {
        let begun = ThreadTime::now();
        let (mut calls, mut granted) = (0, 0);
        while begun.elapsed() < TURN {
            granted += (self.step)(BATCH);
            calls += BATCH;
        }
        let took = begun.elapsed();
        let expected = if outcome == Outcome::Granted { calls } else { 0 };
        assert_eq!(granted, expected, "{} granted another number of requests than the case expects", self.name);
        took.as_nanos() as f64 / calls as f64
    }
}

/// Measures the contenders, and prints their table; ratios are to the first one, per round.
pub(crate) fn show(title: &str, outcome: Outcome, rounds: usize, mut crew: Vec<Contender>) {
    for contender in &mut crew {
        (contender.step)(contender.fill);
        contender.turn(outcome);
    }
    let mut taken = vec![Vec::with_capacity(rounds); crew.len()];
    for _ in 0..rounds {
        for (contender, turns) in crew.iter_mut().zip(&mut taken) {
            turns.push(contender.turn(outcome));
        }
    }
    println!("\n{title}");
    for (contender, turns) in crew.iter().zip(&taken) {
        let ratios: Vec<f64> = turns.iter().zip(&taken[0]).map(|(turn, base)| turn / base).collect();
        let (least, most) = turns.iter().fold((f64::MAX, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
        println!(
            "  {:44} {:7.1} ns ({least:.1} to {most:.1})  x {:.2}",
            contender.name,
            median(turns),
            median(&ratios)
        );
    }
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}
