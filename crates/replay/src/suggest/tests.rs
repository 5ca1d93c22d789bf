//! Proposals compared with every policy, and the sample of a long log.

use super::*;
use crate::fields::{Record, Slots};
use crate::subject::subjects;
use crate::trace::Writer;
use std::io::Cursor;
use tidegate_core::{Config, Kind};

const TABLES: Tables = Tables { max_keys: 10_000, secret: [1, 2] };
const NOW: f64 = 1.7e12;

fn subject() -> Subject {
    let options = serde_json::json!({ "limits": ["rate=1 period=1s"] });
    let options = serde_json::from_value(options).expect("options");
    subjects(&options, &mut Slots::new(None)).expect("a limit").0.remove(0)
}

/// Requests: ms, tokens, key.
fn trace(requests: impl IntoIterator<Item = (f64, f64, u32)>) -> Trace {
    let mut writer = Writer::new(Box::new(Cursor::new(Vec::new())), 1, 1);
    for (now, count, key) in requests {
        let record = Record { now: NOW + now, counts: vec![count], keys: vec![key.to_le_bytes().to_vec()] };
        writer.write(&record).expect("memory");
    }
    writer.finish().expect("memory")
}

fn denied(trace: &mut Trace, subject: &Subject, rate: f64, capacity: f64) -> u64 {
    let config = Config { rate, period: 1000.0, capacity: Some(capacity), ..Config::new(Kind::TokenBucket) };
    let policy = Policy::new(&config).expect("a legal policy");
    count_denied(trace, &mut Decider::alone(subject, policy, TABLES), u64::MAX, |_| true).expect("memory")
}

/// The rate and the capacity of the least sum, and of these the lowest rate.
fn tightest(trace: &mut Trace, subject: &Subject, allowed: u64) -> (f64, f64) {
    let rates = [1, 2, 3, 4, 5, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 120, 150, 200, 250, 300, 400, 500];
    let all = rates.map(|rate| {
        let (mut least, mut most) = (0, 1 << 12);
        while least < most {
            let middle = (least + most) / 2;
            let holds = denied(trace, subject, f64::from(rate), f64::from(middle)) <= allowed;
            *(if holds { &mut most } else { &mut least }) = if holds { middle } else { middle + 1 };
        }
        (rate, least)
    });
    let (rate, capacity) = all.into_iter().min_by_key(|(rate, capacity)| rate + capacity).expect("rates");
    (f64::from(rate), f64::from(capacity))
}

#[test]
fn a_proposal_is_the_tightest_of_all_policies_within_the_budget() {
    let subject = subject();
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    // Up to 1, 10 and 200 requests in a second, of one token or of several.
    for (step, tokens) in [(2000, 2), (1500, 5), (200, 3), (200, 6), (10, 2)] {
        let mut now = 0;
        let requests: Vec<_> = (0..400)
            .map(|_| {
                now += random(step);
                (now as f64, 1.0 + random(tokens - 1) as f64, random(3) as u32)
            })
            .collect();
        let mut trace = trace(requests);
        for budget in [0.0, 0.05, 0.2, 0.6, 1.0] {
            let found = propose(&mut trace, &subject, budget, TABLES).expect("memory").expect("a proposal");
            let (rate, capacity) = tightest(&mut trace, &subject, allowed(budget, 400));
            assert_eq!((found.rate, found.capacity), (rate, capacity), "{step} ms, {tokens} tokens, {budget}");
            assert_eq!(found.denied, denied(&mut trace, &subject, rate, capacity));
        }
    }
}

#[test]
fn a_long_log_is_searched_by_all_requests_of_some_keys() {
    // The limit applies to every second request.
    let count = |i: u32| if (i / 1000).is_multiple_of(2) { 1.0 } else { f64::NAN };
    let mut trace = trace((0..300_000).map(|i| (f64::from(i), count(i), i % 1000)));
    let sample = Sample::of(&mut trace, &subject()).expect("memory");
    assert!((250..420).contains(&sample.starts.len()), "{} of 1000 keys", sample.starts.len());
    assert_eq!(sample.requests.len(), sample.starts.len() * 150);
}

#[test]
fn a_key_outside_of_the_sample_is_searched_where_it_is_the_only_one() {
    let key = (0..).find(|key: &u32| drawn(&key.to_le_bytes()) > 0.5).expect("a key");
    let mut trace = trace((0..410_000).map(|i| (f64::from(i), 1.0, key)));
    let sample = Sample::of(&mut trace, &subject()).expect("memory");
    assert_eq!(sample.requests.len(), 400_000);
}

#[test]
fn keys_are_drawn_evenly() {
    let all: Vec<f64> = (0..10_000_u32).map(|key| drawn(&key.to_le_bytes())).collect();
    assert!(all.iter().all(|drawn| (0.0..1.0).contains(drawn)));
    for below in [0.1, 0.5, 0.9] {
        let share = all.iter().filter(|drawn| **drawn < below).count() as f64 / 1e4;
        assert!((share - below).abs() < 0.03, "{share} of the keys are below {below}");
    }
}
