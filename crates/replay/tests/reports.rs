//! The report as numbers, as a chart and as a page.

mod support;

use serde_json::json;
use support::{csv, run};

#[test]
fn the_chart_is_self_contained_and_shows_denials() {
    let requests: Vec<_> = (0..300).map(|i| (i * 10, 1, 1.0)).collect();
    let options = json!({ "key": ["key"], "limits": ["name=a&b rate=1 period=1s"], "chart": true });
    let wrong = run(csv(&requests), options).unwrap_err().to_string();
    assert!(wrong.contains("`name` must be"), "{wrong}");
    let options = json!({ "key": ["key"], "limits": ["rate=1 period=1s"], "chart": true });
    let replayed = run(csv(&requests), options).unwrap();
    let (svg, html) = (replayed.svg.unwrap(), replayed.html.unwrap());
    for part in ["<svg", "prefers-color-scheme:dark", "currentColor", "#E65454", "#2E86DE", "denied", "role=\"img\""] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("#010203") && !svg.contains("#FEFDFC"));
    assert!(html.contains(&svg) && html.contains("297 of 300 requests denied"));
    // axe requires a landmark, and that the keyboard reaches what scrolls.
    assert!(html.contains("<main>\n<h1>") && html.contains("<pre tabindex=\"0\">"));
    for remote in ["<script", "<link", "@import", "url("] {
        assert!(!html.contains(remote), "{remote}");
    }
}

#[test]
fn text_of_a_log_is_never_markup_of_the_page() {
    let log = format!("time,ip\n{}", "1700000000,<b>&amp;\n".repeat(2));
    let html = run(log, json!({ "limits": ["rate=1 period=1s"], "chart": true })).unwrap().html.unwrap();
    assert!(html.contains("  &lt;b&gt;&amp;amp;  (waits") && !html.contains("<b>"), "{html}");
}

#[test]
fn a_percentile_is_the_wait_that_this_share_of_requests_does_not_exceed() {
    // One token comes after 100 s; of the requests that follow the first, the waits are 100 s to 1 s.
    let requests: Vec<_> =
        std::iter::once(0).chain((0..100).map(|second| second * 1000)).map(|now| (now, 1, 1.0)).collect();
    let options = json!({ "key": ["key"], "limits": ["rate=1 period=100s"] });
    let waits = run(csv(&requests), options).unwrap().report.waits.unwrap();
    let seconds = [waits.p50, waits.p90, waits.p99, waits.max].map(|ms| (ms / 1000.0).floor());
    assert_eq!(seconds, [50.0, 90.0, 99.0, 100.0]);
}

#[test]
fn the_longest_wait_of_all_is_that_of_the_key_that_waits_longest() {
    let report =
        run("time,ip\n1700000000,a\n".to_owned() + "1700000000,a\n", json!({ "limits": ["rate=1 period=1m"] }))
            .unwrap()
            .report;
    let waits = report.waits.unwrap();
    assert_eq!((waits.p50, waits.max, report.limits[0].worst[0].longest_wait), (60_000.0, 60_000.0, 60_000.0));
}
