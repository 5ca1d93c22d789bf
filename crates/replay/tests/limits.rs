//! The report on limits: the least capacity, proposals, several limits at once, policy documents.

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};
use support::{EPOCH_S, csv, run};
use tidegate_core::default_start;
use tidegate_replay::Report;

fn report(requests: &[(u64, u8, f64)], more: Value) -> Report {
    let mut options = json!({ "key": ["key"], "cost": "cost" });
    options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    run(csv(requests), options).unwrap().report
}

fn line(kind: &str, rate: f64, period: u64, capacity: f64) -> Value {
    json!({ "limits": [format!("kind={kind} rate={rate} period={period}ms capacity={capacity}")] })
}

/// Requests of a few keys, in no strict order of time, so that the clock steps back too; some jump by hours.
fn traffic(whole: bool) -> impl Strategy<Value = Vec<(u64, u8, f64)>> {
    let step = prop_oneof![4 => 0i64..30, 3 => 0i64..2000, 1 => -500i64..0, 1 => 0i64..10_000_000];
    let count =
        if whole { Just(1.0).boxed() } else { prop_oneof![Just(1.0), 0.0..4.0, (0u32..9).prop_map(f64::from)].boxed() };
    prop::collection::vec((step, 0u8..4, count), 1..150).prop_map(|steps| {
        let mut now = 0i64;
        let walk = steps.into_iter().map(|(step, key, count)| {
            now = (now + step).max(0);
            (now as u64, key, count)
        });
        walk.collect()
    })
}

fn rates() -> impl Strategy<Value = f64> {
    prop_oneof![(1u32..20).prop_map(f64::from), (1u32..50, 1u32..30).prop_map(|(a, b)| f64::from(a) / f64::from(b))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_smallest_capacity_denies_nothing_and_one_less_denies_something(
        requests in traffic(false), rate in rates(), period in prop_oneof![Just(1000u64), 1u64..5000],
        kind in prop_oneof![Just("token_bucket"), Just("fixed_window")], own in 0u32..10,
    ) {
        let outcome = report(&requests, line(kind, rate, period, f64::from(own)));
        let limit = &outcome.limits[0];
        prop_assert!(limit.smallest_capacity_exact);
        let least = limit.smallest_capacity.unwrap();
        prop_assert_eq!(report(&requests, line(kind, rate, period, least)).denied, 0);
        if least > 0.0 {
            prop_assert!(report(&requests, line(kind, rate, period, least - 1.0)).denied > 0);
        }
        // So the limit's own capacity denies something exactly where it is less.
        prop_assert_eq!(outcome.denied > 0, f64::from(own) < least);
    }

    #[test]
    fn a_proposal_keeps_its_budget_and_is_the_least_for_its_rate(
        requests in traffic(true), percent in 0u32..40, period in prop_oneof![Just(1000u64), 1u64..5000],
    ) {
        let suggest = json!({ "suggest": format!("{percent}%"), "period": format!("{period}ms") });
        let outcome = report(&requests, suggest);
        let found = outcome.limits[0].suggestion.clone().unwrap();
        let share = |denied: u64| denied as f64 / requests.len() as f64;
        prop_assert!(share(found.denied) <= found.budget);
        // Without a limit, the proposal is what was replayed.
        prop_assert_eq!((outcome.denied, outcome.limits[0].rate, outcome.limits[0].capacity), (found.denied, found.rate, found.capacity));
        let again = report(&requests, line("token_bucket", found.rate, period, found.capacity));
        prop_assert_eq!(again.denied, found.denied);
        if found.capacity > 0.0 {
            let less = report(&requests, line("token_bucket", found.rate, period, found.capacity - 1.0));
            prop_assert!(share(less.denied) > found.budget, "{} of {}", less.denied, requests.len());
        }
    }
}

#[test]
fn a_burst_of_thousands_has_its_capacity_to_the_token() {
    // Deep enough that only the keys with much debt are decided again.
    let mut requests: Vec<_> = (0..5000).map(|i| (i * 3, (i % 3) as u8, 1.0)).collect();
    requests.extend((0..777).map(|_| (20_000, 1, 1.0)));
    requests.extend((0..300).map(|i| (20_000 + i, 2, 1.0)));
    let least = report(&requests, line("token_bucket", 7.0, 100, 1.0)).limits[0].smallest_capacity.unwrap();
    assert_eq!(report(&requests, line("token_bucket", 7.0, 100, least)).denied, 0);
    assert!(report(&requests, line("token_bucket", 7.0, 100, least - 1.0)).denied > 0);
}

#[test]
fn a_request_needs_all_limits_and_each_limit_counts_its_denials() {
    let requests: Vec<_> = (0..10).map(|i| (i, (i % 2) as u8, 1.0)).collect();
    let limits = json!({ "limits": ["name=wide rate=8 period=1h", "name=narrow rate=3 period=1h"] });
    let outcome = report(&requests, limits);
    assert_eq!((outcome.granted, outcome.denied), (6, 4));
    let by: Vec<_> =
        outcome.limits.iter().map(|limit| (limit.name.as_str(), limit.denied, limit.smallest_capacity)).collect();
    assert_eq!(by, [("wide", 0, Some(5.0)), ("narrow", 4, Some(5.0))]);
    assert_eq!(outcome.limits[1].worst.iter().map(|key| key.denied).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(outcome.limits[1].keys_denied, Some(2));
    assert_eq!(outcome.waits.unwrap().max as u64 / 1_000_000, 1);
    // The first token is back 20 minutes after the first request.
    for key in &outcome.limits[1].worst {
        assert!((1_199_990.0..=1_200_000.0).contains(&key.longest_wait), "{key:?}");
    }
    let peaks: Vec<_> = outcome.peaks.iter().map(|peak| (peak.width, peak.at, peak.tokens)).collect();
    assert_eq!(peaks, [(1e3, EPOCH_S as f64 * 1e3, 10.0), (6e4, (EPOCH_S - 20) as f64 * 1e3, 10.0)]);
}

#[test]
fn requests_that_cost_nothing_have_a_busiest_second_in_the_log() {
    let outcome = report(&[(1000, 0, 0.0), (2000, 0, 0.0)], line("token_bucket", 1.0, 1000, 1.0));
    assert_eq!((outcome.peaks[0].at, outcome.peaks[0].tokens), ((EPOCH_S + 1) as f64 * 1e3, 0.0));
}

#[test]
fn a_policy_document_determines_the_matching_requests_the_key_and_the_cost() {
    let document = json!({
        "rules": [
            { "name": "pro", "limit_keys": ["header:x-api-key"], "match": { "jwt:plan": "pro" }, "algorithm": "token_bucket",
              "algorithm_config": { "rate": 3, "period": 60_000 } },
            { "name": "free", "limit_keys": ["header:x-api-key"], "match": { "jwt:plan": "free" }, "algorithm": "token_bucket",
              "algorithm_config": { "rate": 4, "period": 60_000, "cost_source": "header:x-cost", "default_cost": 1 } },
        ],
        "fallback_limit": { "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": { "rate": 1, "period": 60_000 } },
    });
    let log = "{\"time\":1700000000,\"x_api_key\":\"a\",\"plan\":\"pro\"}\n".repeat(4)
        + &"{\"time\":1700000000,\"x_api_key\":\"a\",\"plan\":\"free\",\"x-cost\":\"2\"}\n".repeat(3)
        + "{\"time\":1700000000,\"x_api_key\":\"b\",\"plan\":\"free\",\"x-cost\":\"1e3\"}\n"
        + &"{\"time\":1700000000,\"x_api_key\":\"c\"}\n".repeat(2);
    let outcome = run(log, json!({ "policy": document.to_string() })).unwrap().report;
    let by: Vec<_> =
        outcome.limits.iter().map(|limit| (limit.name.as_str(), limit.denied, limit.smallest_capacity)).collect();
    assert_eq!(by, [("pro", 1, Some(4.0)), ("free", 1, Some(6.0)), ("fallback_limit", 1, Some(2.0))]);
    assert_eq!((outcome.read.requests, outcome.denied, outcome.tokens), (10, 3, 4.0 + 6.0 + 1.0 + 2.0));

    let wrong =
        run("", json!({ "policy": "{\"rules\":[{\"name\":\"a\",\"limit_kyes\":[]}]}" })).unwrap_err().to_string();
    assert!(wrong.contains("did you mean `limit_keys`?"), "{wrong}");
}

#[test]
fn a_rule_in_shadow_mode_leaves_its_requests_to_the_fallback_as_on_a_server() {
    let limited = |shadow: bool| {
        let config = json!({ "rate": 1, "period": 60_000 });
        let rule = json!({ "name": "tried", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": config, "shadow": shadow });
        let fallback = json!({ "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": config });
        let document = json!({ "rules": [rule], "fallback_limit": fallback }).to_string();
        let report = run("time,ip\n1700000000,a\n1700000000,b\n", json!({ "policy": document })).unwrap().report;
        report.limits.iter().map(|limit| limit.denied).collect::<Vec<_>>()
    };
    assert_eq!(limited(false), [1, 0]);
    assert_eq!(limited(true), [1, 1]);
}

#[test]
fn a_rule_in_shadow_mode_denies_no_request_and_takes_nothing_of_a_denied_one_as_on_a_server() {
    let rule = |name: &str, rate: u32, shadow: bool| {
        json!({ "name": name, "limit_keys": ["ip:address"], "algorithm": "token_bucket",
                "algorithm_config": { "rate": rate, "period": "1h" }, "shadow": shadow })
    };
    let decided = |rules: Value| {
        let log = format!("time,ip\n{}", "1700000000,a\n".repeat(6));
        let options = json!({ "policy": json!({ "rules": rules }).to_string(), "suggest": "0" });
        let replayed = run(log, options).unwrap();
        let report = replayed.report;
        let of = report.limits.iter().map(|limit| (limit.shadow, limit.denied, limit.worst[0].denied));
        (report.granted, of.collect::<Vec<_>>(), report.limits[1].clone(), replayed.text)
    };
    // Two requests are granted. The rule with one token denies five, and the one with three is never without tokens.
    let (granted, by, tried, text) = decided(json!([rule("api", 2, false), rule("tried", 1, true)]));
    assert_eq!((granted, by), (2, vec![(false, 4, 4), (true, 5, 5)]));
    assert_eq!((tried.smallest_capacity, tried.suggestion.map(|found| found.denied)), (Some(6.0), Some(0)));
    assert!(text.contains("by ip, in shadow mode\n  would deny 5 requests (83.33 %) of 1 keys\n"), "{text}");
    let log = format!("time,ip\n{}", "1700000000,a\n".repeat(6));
    let rules = json!([rule("tried", 3, true), rule("api", 2, false)]);
    let report = run(log, json!({ "policy": json!({ "rules": rules }).to_string() })).unwrap().report;
    assert_eq!((report.granted, report.limits[0].denied, report.limits[1].denied), (2, 0, 4));
}

/// A rule of one token an hour and two at most, and a fallback of the same.
fn rules(limit_keys: Value) -> Value {
    let bucket = json!({ "rate": 1, "period": "1h", "capacity": 2 });
    let fallback = json!({ "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": bucket });
    let rule = json!({ "name": "pro", "match": { "jwt:plan": "pro" }, "limit_keys": limit_keys,
                       "algorithm": "token_bucket", "algorithm_config": bucket });
    json!({ "policy": json!({ "rules": [rule], "fallback_limit": fallback }).to_string() })
}

#[test]
fn requests_that_lack_a_part_of_a_rules_key_share_one_key_and_are_not_bad_lines() {
    let log = "{\"time\":1700000000,\"ip\":\"::1\",\"plan\":\"pro\",\"x-api-key\":\"k\",\"x-org\":\"a\"}\n".to_owned()
        + &"{\"time\":1700000000,\"ip\":\"::1\",\"plan\":\"pro\",\"x-org\":\"a\"}\n".repeat(3)
        + &"{\"time\":1700000000,\"ip\":\"::1\"}\n".repeat(4);
    let names = "`x-api-key` (or http_x-api-key, headers.x-api-key, req.headers.x-api-key, request.headers.x-api-key)";
    for (limit_keys, key) in [(json!(["header:x-api-key"]), "-"), (json!(["header:x-org", "header:x-api-key"]), "1:a-")]
    {
        let outcome = run(&log, rules(limit_keys)).unwrap().report;
        assert_eq!((outcome.read.requests, outcome.read.bad), (8, 0));
        let by: Vec<_> = outcome.limits.iter().map(|limit| (limit.denied, limit.worst[0].key.as_str())).collect();
        assert_eq!(by, [(1, key), (2, "::/56")]);
        assert_eq!(outcome.notes, [format!("requests without {names} share one key, as on a server")]);
    }
    let without = log.replace("\"x-api-key\"", "\"other\"");
    let outcome = run(&without, rules(json!(["header:x-api-key"]))).unwrap().report;
    assert_eq!(outcome.limits[0].denied, 2);
    assert_eq!(outcome.notes, [format!("no request has {names}, so all share one key; --key names another field")]);
    // A request always has an address.
    let outcome = run(log.replace("\"ip\"", "\"a\""), rules(json!(["header:x-api-key"]))).unwrap_err();
    assert!(outcome.to_string().contains("no field `ip`"), "{outcome}");
    // CSV has the part in a column, or cannot be replayed.
    let csv = "time,ip,plan\n1700000000,::1,pro\n";
    let outcome = run(csv, rules(json!(["header:x-api-key"]))).unwrap_err();
    assert!(outcome.to_string().contains("csv: no column `x-api-key`"), "{outcome}");
    // In place of the rules' keys, a field must exist.
    let mut options = rules(json!(["header:x-api-key"]));
    options["key"] = json!(["x-api-key"]);
    assert_eq!(run(&log, options).unwrap().report.read.bad, 7);
}

#[test]
fn a_long_key_of_a_rule_is_hashed_as_on_a_server() {
    let line = |token: &str| {
        format!("{{\"time\":{EPOCH_S},\"ip\":\"::1\",\"plan\":\"pro\",\"authorization\":\"Bearer {token}\"}}\n")
    };
    let long = "x".repeat(1100);
    let log = line(&long).repeat(3) + &line(&format!("{long}y"));
    let outcome = run(log, rules(json!(["header:authorization"]))).unwrap().report;
    assert_eq!((outcome.read.bad, outcome.granted, outcome.denied), (0, 3, 1));
    // As the package's `policyKey` writes it.
    assert_eq!(
        outcome.limits[0].worst[0].key,
        "sha256:59a71fc36904d84ba2bba5c3492ab0f00bb2fda8d5ef873bac3244e8b0b0e993"
    );
    let longest = run(line(&"x".repeat(1024 - "1019:Bearer ".len())).repeat(3), rules(json!(["header:authorization"])));
    assert!(longest.unwrap().report.limits[0].worst[0].key.starts_with("Bearer x"));
}

#[test]
fn a_limit_and_a_rule_on_the_same_field_have_separate_keys() {
    let mut options = rules(json!(["ip:address"]));
    options["limits"] = json!(["rate=1 period=1h capacity=2"]);
    let log = "{\"time\":1700000000,\"ip\":\"10.0.0.1\",\"plan\":\"pro\"}\n".repeat(3);
    let outcome = run(log, options).unwrap().report;
    let keys = [0, 2].map(|limit| outcome.limits[limit].worst[0].key.as_str());
    assert_eq!(keys, ["10.0.0.1", "10.0.0.1"]);
}

#[test]
fn an_address_in_a_field_of_another_name_is_matched_as_text() {
    let options = rules(json!([])).to_string().replace(r#"\"jwt:plan\":\"pro\""#, r#"\"jwt:plan\":\"10.0.0.1:80\""#);
    let log = "{\"time\":1700000000,\"ip\":\"::1\",\"plan\":\"10.0.0.1:80\"}\n".repeat(3);
    let outcome = run(log, serde_json::from_str(&options).unwrap()).unwrap().report;
    assert_eq!(outcome.limits.iter().map(|limit| limit.denied).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn the_windows_of_a_rule_are_those_of_a_server() {
    let window = json!({ "rate": 1, "period": "1h" });
    let rule = json!({ "name": "w", "limit_keys": ["header:x-api-key"], "algorithm": "fixed_window", "algorithm_config": window });
    let options = json!({ "policy": json!({ "rules": [rule] }).to_string() });
    // The key as the package's `policyKey` writes it.
    let start = default_start("w", Some(b"4:acme"), 3_600_000.0) + 1_699_999_200_000.0;
    let denied = |offsets: [f64; 2]| {
        let lines = offsets.map(|offset| format!("{{\"time\":{},\"x-api-key\":\"acme\"}}\n", start + offset));
        run(lines.concat(), options.clone()).unwrap().report.denied
    };
    assert_eq!((denied([-1.0, 0.0]), denied([0.0, 3_599_999.0]), denied([0.0, 3_600_000.0])), (0, 1, 0));
}

#[test]
fn a_budget_is_not_changed_by_rounding() {
    // 0.29 * 100 and 0.7 / 100 * 1000 are below 29 and 7.
    for (requests, budget, denied) in [(100, "29%", 29), (100, "0.29", 29), (1000, "0.7%", 7), (1000, "0.007", 7)] {
        let outcome = report(&vec![(0, 0, 1.0); requests], json!({ "suggest": budget }));
        assert_eq!(outcome.denied, denied, "{budget}");
    }
}

#[test]
fn a_rule_has_all_numbers_of_its_document_and_notes_report_what_is_left_out() {
    let rule = |name: &str, kind: &str, config: Value, more: Value| {
        let mut rule = json!({ "name": name, "limit_keys": [], "match": { "jwt:plan": name }, "algorithm": kind,
                               "algorithm_config": config });
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rule
    };
    let tiers = json!({ "tiers": { "by": "jwt:tier", "settings": { "big": { "rate": 9, "period": 60_000 } } } });
    let block = json!({ "block": { "after": 1, "for": "1h" } });
    let document = json!({ "rules": [
        rule("windows", "fixed_window", json!({ "rate": 3, "period": 60_000, "start": 30_000 }), block),
        rule("bucket", "token_bucket", json!({ "rate": 2, "period": "1h", "capacity": 4, "shards": 2 }), tiers),
        rule("ahead", "token_bucket", json!({ "rate": 1, "period": "1h", "maxReserved": 2 }), json!({ "reserve": true })),
    ] });
    let requests = |plan: &str, seconds: &[u64]| {
        let line = |second: &u64| format!("{{\"time\":{},\"plan\":\"{plan}\"}}\n", EPOCH_S + second);
        seconds.iter().map(line).collect::<String>()
    };
    // The first second is 20 s after a minute.
    let log = requests("windows", &[0, 0, 0, 9, 9, 10, 10, 10, 10])
        + &requests("bucket", &[11; 7])
        + &requests("ahead", &[12; 5])
        + &requests("none", &[13; 100]);
    let outcome = run(log, json!({ "policy": document.to_string() })).unwrap().report;
    let by: Vec<_> = outcome
        .limits
        .iter()
        .map(|limit| (limit.name.as_str(), limit.denied, limit.capacity, limit.smallest_capacity))
        .collect();
    let expected = [("windows", 3, 3.0, Some(6.0)), ("bucket", 3, 4.0, Some(7.0)), ("ahead", 2, 1.0, Some(3.0))];
    assert_eq!(by, expected);
    assert_eq!((outcome.granted, outcome.denied), (113, 8));
    let block = "windows: its block is ignored; a server blocks a key that is denied repeatedly";
    let tiers = "bucket: its tiers are ignored; every request has the rule's own limit";
    assert_eq!(outcome.notes, [block, tiers, "bucket: its shards are replayed as one"]);
}

#[test]
fn a_cost_that_no_request_states_is_noted() {
    let rule = |name: &str| {
        json!({ "name": name, "limit_keys": [], "cost": { "source": "header:x-cost" }, "algorithm": "token_bucket",
                "algorithm_config": { "rate": 5, "period": "1h" } })
    };
    let notes = |cost: Option<u32>| {
        let log = format!("{}\n{}\n", json!({ "time": EPOCH_S }), json!({ "time": EPOCH_S, "x-cost": cost }));
        let options = json!({ "policy": json!({ "rules": [rule("a"), rule("b")] }).to_string() });
        run(log, options).unwrap().report.notes
    };
    assert_eq!(notes(Some(2)), [""; 0]);
    let names = "`x-cost` (or http_x-cost, headers.x-cost, req.headers.x-cost, request.headers.x-cost)";
    let note = format!("no request has {names}, so each takes the rule's default cost; --cost names another field");
    assert_eq!(notes(None), [note]);
}

#[test]
fn a_rule_matches_an_address_under_all_its_names_and_as_a_server_writes_it() {
    let rule = |name: &str, rate: u32, matched: Value| {
        let bucket = json!({ "rate": rate, "period": "1h" });
        json!({ "name": name, "limit_keys": [], "match": matched, "algorithm": "token_bucket", "algorithm_config": bucket })
    };
    let document = json!({ "rules": [
        rule("v4", 1, json!({ "ip:address": "10.0.0.1" })),
        rule("v6", 1, json!({ "ip:address": "2001:db8:7::/56" })),
        rule("header", 3, json!({ "header:ip": "10.0.0.9" })),
        rule("wide", 9, json!({ "header:ip": "10.0.0.9" })),
        rule("none", 1, json!({ "header:x-plan": "free" })),
    ] });
    // Three are granted: the second and the fourth are denied by their addresses, the last by the header.
    let log =
        ["10.0.0.1", "10.0.0.1:4711", "2001:db8:7::1", "2001:db8:7:1::2", "10.0.0.2", "10.0.0.3"].map(|address| {
            let request = json!({ "time": EPOCH_S, "remote_addr": address, "headers": { "ip": "10.0.0.9" } });
            format!("{request}\n")
        });
    let outcome = run(log.concat(), json!({ "policy": document.to_string() })).unwrap().report;
    let by: Vec<_> = outcome.limits.iter().map(|limit| limit.denied).collect();
    assert_eq!((outcome.granted, by), (3, vec![1, 1, 1, 0, 0]));
    assert_eq!(outcome.notes, ["none: no request matches; the log may lack the fields of its `match`"]);
}

#[test]
fn mistakes_in_limits_have_the_message_of_the_core() {
    let message = |more| run("time,ip\n1700000000,a\n", more).unwrap_err().to_string();
    let rule = "limit \"limit\": `rate` must be a finite number of tokens above 0 and up to 1099511627776; got 0";
    assert_eq!(message(json!({ "limits": ["rate=0 period=1s"] })), rule);
    assert!(message(json!({})).starts_with("there is no limit to replay"));
    assert!(message(json!({ "suggest": "120%" })).contains("from 0 to 1; got \"120%\""));
    let period = "`period` must be a time such as 500ms, 1s or 15m; got \"soon\"";
    assert_eq!(message(json!({ "suggest": "1%", "period": "soon" })), period);
    assert!(message(json!({ "limits": ["rate=1 period=1s", "name=limit rate=1 period=1s"] })).contains("two limits"));
}

#[test]
fn evictions_for_lack_of_room_are_reported() {
    let requests: Vec<_> = (0..250).map(|i| (i, i as u8, 1.0)).collect();
    let outcome = report(&requests, json!({ "limits": ["rate=1 period=1h"], "maxKeys": 10 }));
    assert!(outcome.forgotten >= 200, "{}", outcome.forgotten);
    assert!(!outcome.limits[0].smallest_capacity_exact);
}
