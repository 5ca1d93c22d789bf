//! Reports and their text.

use super::*;
use crate::report::{BadLine, PeakReport, Read, Suggestion, Waits, WorstKey};

const NOW: f64 = 1.7e12;

/// One request, granted, and nothing to note.
fn plain() -> Report {
    let limit = LimitReport {
        name: "limit".to_owned(),
        kind: "token bucket",
        key: vec![],
        rate: 1.0,
        period: 1000.0,
        capacity: 1.0,
        shadow: false,
        denied: 0,
        keys_denied: Some(0),
        worst: vec![],
        smallest_capacity: Some(1.0),
        smallest_capacity_exact: true,
        suggestion: None,
    };
    Report {
        read: Read { lines: 1, requests: 1, from: NOW, to: NOW, ..Read::default() },
        granted: 1,
        denied: 0,
        tokens: 1.0,
        tokens_granted: 1.0,
        limits: vec![limit],
        waits: None,
        never: 0,
        forgotten: 0,
        peaks: vec![PeakReport { width: 1000.0, at: NOW, tokens: 1.0 }],
        notes: vec![],
    }
}

#[test]
fn a_report_has_only_lines_with_something_to_report() {
    let expected = "\
1 requests in 0 ms, 2023-11-14T22:13:20Z to 2023-11-14T22:13:20Z
  granted             1  100.00 %
  denied              0  0.00 %
  busiest  1 tokens in 1 s at 2023-11-14T22:13:20Z

limit (token bucket, rate 1 per 1 s, capacity 1), for all requests together
  denies 0 requests (0.00 %)
  smallest capacity that denies nothing: 1
";
    assert_eq!(of(&plain()), expected);
}

#[test]
fn a_report_has_every_figure_with_its_unit() {
    let mut report = plain();
    let key =
        |key: &str, denied, at_most, longest_wait| WorstKey { key: key.to_owned(), denied, at_most, longest_wait };
    let limit = LimitReport {
        key: vec!["ip".to_owned(), "path".to_owned()],
        rate: 1234.5,
        period: 5_400_000.0,
        denied: 234_567,
        keys_denied: Some(1000),
        worst: vec![key("10.0.0.1", 1234, 1234, 999.0), key("a\nb\u{202e}", 12, 15, 90_000.0)],
        smallest_capacity: Some(9e15),
        smallest_capacity_exact: false,
        suggestion: Some(Suggestion { budget: 0.25, rate: 5.0, period: 60_000.0, capacity: 7.0, denied: 123_456 }),
        ..report.limits.remove(0)
    };
    let worst = vec![key("10.0.0.1", 1, 1, 0.0)];
    let second =
        LimitReport { worst, denied: 1, keys_denied: None, smallest_capacity: None, suggestion: None, ..limit.clone() };
    report.limits = vec![limit, second];
    let bad = BadLine { file: "the.log".to_owned(), line: 7, text: "what".to_owned(), why: "not a time".to_owned() };
    report.read = Read {
        lines: 1_234_568,
        requests: 1_234_567,
        bad: 1,
        first_bad: vec![bad],
        out_of_order: 1500,
        farthest_back: 1500.0,
        whole_seconds: true,
        from: NOW,
        to: NOW + 1.5 * 86_400_000.0,
        formats: vec![],
    };
    (report.granted, report.denied) = (1_000_000, 234_567);
    (report.tokens, report.tokens_granted) = (2_000_000.0, 1_000_000.125);
    (report.never, report.forgotten) = (12, 345);
    report.waits = Some(Waits { p50: 250.0, p90: 1000.0, p99: 60_000.0, max: 3_600_000.0 });
    report.peaks.push(PeakReport { width: 60_000.0, at: NOW - 20_000.0, tokens: 1234.0 });
    report.notes.push("what is left out".to_owned());
    let expected = "\
1,234,567 requests in 1.5 d, 2023-11-14T22:13:20Z to 2023-11-16T10:13:20Z
  granted     1,000,000  81.00 %
  denied        234,567  19.00 %
  tokens      2,000,000  of which 1000000.125 were granted
  busiest  1 tokens in 1 s at 2023-11-14T22:13:20Z, 1,234 tokens in 1 min at 2023-11-14T22:13:00Z
  waits    half up to 250 ms, 90 % up to 1 s, 99 % up to 1 min, all up to 1 h
  never              12  need more than a limit ever holds

limit (token bucket, rate 1234.500 per 1.5 h, capacity 1), by ip and path
  denies 234,567 requests (19.00 %) of 1,000 keys
  smallest capacity that denies nothing: 9000000000000000.000 (not exact: keys were evicted)
  suggested for a budget of 25 %: rate 5 per 1 min, capacity 7; denies 123,456 requests (10.00 %)
  worst hit keys, at least and at most so often
         1,234  10.0.0.1  (waits up to 999 ms)
            12 to 15  a\u{fffd}b\u{fffd}  (waits up to 1.5 min)

limit (token bucket, rate 1234.500 per 1.5 h, capacity 1), by ip and path
  denies 1 requests (0.00 %)
  no capacity is enough to deny nothing
  worst hit keys
             1  10.0.0.1  (waits up to 0 ms)

note: what is left out
note: all times are whole seconds, so bursts may look up to a second denser than they were
note: 1,500 requests are out of order, by up to 1.5 s; a clock that steps back adds no tokens
note: 345 states were evicted before they were full; more fit with --max-keys
note: 1 of 1,234,568 lines could not be used
  the.log:7: not a time
    what
";
    assert_eq!(of(&report), expected);
}
