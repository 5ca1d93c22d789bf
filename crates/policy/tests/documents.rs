//! The documents that every host is tested with: legal ones, and the message of each mistake.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use tidegate_core::Kind;
use tidegate_policy::{Block, Document, Enforcement, OnStoreError, Source, Tree, schema};

#[derive(Deserialize)]
struct Case {
    about: String,
    document: Option<Value>,
    text: Option<String>,
    #[serde(default)]
    limits: Vec<String>,
    #[serde(default)]
    sentences: Vec<String>,
}

impl Case {
    fn text(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.document.clone().unwrap_or(Value::Null).to_string())
    }
}

fn cases(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policies").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn legal_documents_are_read_with_their_limits_in_order() {
    let cases = cases("valid.json");
    assert!(cases.len() >= 15);
    for case in cases {
        let document = Document::parse(&case.text()).unwrap_or_else(|problems| panic!("{}: {problems}", case.about));
        let names: Vec<&str> = document.limits().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, case.limits, "{}", case.about);
    }
}

#[test]
fn reports_every_mistake_of_a_document_with_these_messages() {
    let cases = cases("invalid.json");
    assert!(cases.len() >= 45);
    // Of all cases together: many have the message with the names of all fields.
    let mut wrong = Vec::new();
    for case in cases {
        let problems = Document::parse(&case.text()).expect_err(&case.about);
        let messages: Vec<&str> = problems.0.iter().map(|problem| problem.message.as_str()).collect();
        if messages != case.sentences {
            wrong.push(format!("{}: reports {messages:#?}, and not {:#?}", case.about, case.sentences));
        }
        for problem in &problems.0 {
            assert!(problem.message.contains(&problem.expected) && problem.message.contains(&problem.got));
            assert_eq!(problem.path.starts_with("rules["), problem.rule.is_some(), "{}", problem.path);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_aliases_of_a_cost_are_read_by_their_source() {
    let about = "the configuration of Fairvisor's page, and one with both costs beside a source";
    let case = cases("valid.json").into_iter().find(|case| case.about == about).unwrap();
    let costs = Document::parse(&case.text()).unwrap().rules.into_iter().map(|rule| rule.cost);
    let costs: Vec<_> = costs.map(|cost| (cost.stated.is_some(), cost.default, cost.min, cost.max)).collect();
    assert_eq!(costs, [(false, 1.0, 1.0, Some(1.0)), (true, 3.0, 1.0, None), (false, 2.0, 2.0, Some(2.0))]);
}

#[test]
fn a_stated_cost_takes_at_least_one_token_or_the_default_where_that_is_less() {
    for (cost, least) in [
        (r#""source": "header:x-cost""#, 1.0),
        (r#""source": "header:x-cost", "default": 5"#, 1.0),
        (r#""source": "header:x-cost", "default": 0.25"#, 0.25),
        (r#""source": "header:x-cost", "default": 5, "min": 2"#, 2.0),
        (r#""source": "header:x-cost", "min": 0"#, 0.0),
    ] {
        let rule = r#""name": "api", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": { "rps": 10 }"#;
        let document = Document::parse(&format!(r#"{{ "rules": [{{ {rule}, "cost": {{ {cost} }} }}] }}"#)).unwrap();
        assert_eq!(document.rules[0].cost.min, least, "{cost}");
    }
}

#[test]
fn the_enforcement_of_a_rule_is_read_with_its_defaults_and_written_in_ms() {
    let about = "rules in shadow mode, with settings of their own for a failed store, and with blocks";
    let case = cases("valid.json").into_iter().find(|case| case.about == about).unwrap();
    let document = Document::parse(&case.text()).unwrap();
    let plain = Enforcement { shadow: false, on_store_error: None, block: None };
    let failing = |setting| Enforcement { on_store_error: Some(setting), ..plain.clone() };
    let block = |after, lengths: &[f64], within| Some(Block { after, lengths: lengths.to_vec(), within });
    let found: Vec<_> = document.limits().map(|rule| rule.enforcement.clone()).collect();
    let expected = [
        Enforcement { shadow: true, ..plain.clone() },
        failing(OnStoreError::Allow),
        failing(OnStoreError::Deny),
        failing(OnStoreError::Local(0.25)),
        Enforcement { block: block(1.0, &[1.0], 86_400e3), ..plain.clone() },
        Enforcement { block: block(1e6, &[60e3, 600e3, 3600e3], 12.0 * 3600e3), ..plain.clone() },
        Enforcement {
            shadow: true,
            on_store_error: Some(OnStoreError::Local(1.0)),
            block: block(5.0, &[5400e3], 86_400e3),
        },
    ];
    assert_eq!(found, expected);
    let written = serde_json::to_value(document.fallback.unwrap()).unwrap();
    assert_eq!(written["shadow"], Value::from(true));
    assert_eq!(written["onStoreError"], serde_json::json!({ "local": 1.0 }));
    assert_eq!(written["block"], serde_json::json!({ "after": 5.0, "for": [5400e3], "within": 86_400e3 }));
}

/// JSON has no such number, but JavaScript passes it.
#[test]
fn a_number_in_a_match_must_be_finite() {
    let text = |text: &str| Tree::Text(text.into());
    let document = |number| {
        let map = |entries: Vec<(&str, Tree)>| {
            Tree::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let rule = map(vec![
            ("name", text("api")),
            ("limit_keys", Tree::List(Vec::new())),
            ("algorithm", text("token_bucket")),
            ("algorithm_config", map(vec![("rps", Tree::Number(10.0))])),
            ("match", map(vec![("jwt:level", Tree::Number(number))])),
        ]);
        Document::read(&map(vec![("rules", Tree::List(vec![rule]))]))
    };
    assert_eq!(document(7.5).unwrap().rules[0].matches[0].equals, "7.5");
    for (number, shown) in [(f64::NAN, "NaN"), (f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity")] {
        let problems = document(number).unwrap_err();
        let expected = format!(
            r#"rule 0 "api": `match["jwt:level"]` must be a string, a finite number, true or false; got {shown}"#
        );
        assert_eq!(problems.to_string(), expected);
    }
}

#[test]
fn each_unit_of_a_duration_has_its_length_in_ms() {
    let units = [("1ms", 1.0), ("1s", 1e3), ("1m", 60e3), ("1h", 3600e3), ("1d", 86_400e3), ("1w", 604_800e3)];
    for (text, ms) in units.into_iter().chain([("1.5w", 907_200e3), ("1.005s", 1005.0)]) {
        let config = format!(r#"{{ "rate": 1, "period": "{text}" }}"#);
        let rule = r#""name": "api", "limit_keys": [], "algorithm": "token_bucket""#;
        let document = format!(r#"{{ "rules": [{{ {rule}, "algorithm_config": {config} }}] }}"#);
        assert_eq!(Document::parse(&document).unwrap().rules[0].limit.policy.period(), ms, "{text}");
    }
}

#[test]
fn a_text_is_a_duration_only_where_a_time_is_expected() {
    let config = |config: &str| {
        let rule =
            format!(r#""name": "api", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {config}"#);
        Document::parse(&format!(r#"{{ "rules": [{{ {rule} }}] }}"#))
            .map(|document| document.rules[0].policy_of(None).period())
    };
    assert_eq!(config(r#"{ "rate": 10, "period": "1.5s" }"#), Ok(1500.0));
    // As products of doubles these are no integers.
    assert_eq!(config(r#"{ "rate": 10, "period": "1.005s" }"#), Ok(1005.0));
    assert_eq!(config(r#"{ "rate": 10, "period": "0.07h" }"#), Ok(252_000.0));
    assert!(config(r#"{ "rate": 10, "period": "1.0005s" }"#).is_err());
    let problems = config(r#"{ "rate": 10, "period": "1s", "capacity": "30s" }"#).unwrap_err();
    assert!(problems.0[0].message.ends_with("got \"30s\""), "{problems}");
}

#[test]
fn a_cost_above_what_the_limit_grants_has_a_hint_where_the_limit_is_the_reason() {
    let document = |cost: &str| {
        let rule = r#""name": "api", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": { "rps": 10 }"#;
        Document::parse(&format!(r#"{{ "rules": [{{ {rule}, "cost": {{ "source": "header:x", {cost} }} }}] }}"#))
    };
    for (cost, hint) in [
        (r#""default": 11"#, Some("the limit never grants more at once")),
        (r#""default": 11, "max": 20"#, Some("the limit never grants more at once")),
        (r#""default": 11, "max": 10"#, None),
        (r#""default": -1"#, None),
    ] {
        assert_eq!(document(cost).unwrap_err().0[0].hint.as_deref(), hint, "{cost}");
    }
    let least = document(r#""default": 10, "max": 10, "min": -0.0"#).unwrap().rules[0].cost.min;
    assert!(least == 0.0 && least.is_sign_positive());
}

/// What follows from a mistake is none.
#[test]
fn a_cost_is_not_compared_with_a_limit_that_has_mistakes() {
    let problems = Document::parse(
        r#"{ "rules": [{ "name": "api", "limit_keys": [], "algorithm": "token_bucket", "cost": 7,
            "algorithm_config": { "rps": 10, "burst": 5 } }] }"#,
    )
    .unwrap_err();
    let paths: Vec<&str> = problems.0.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["rules[0].algorithm_config.burst"]);
}

#[test]
fn a_name_is_found_twice_beside_other_mistakes() {
    let rule = r#""name": "api", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": { "rps": 10 }"#;
    let document = format!(r#"{{ "rules": [{{ {rule} }}], "fallback_limit": {{ {rule}, "cost": "one" }} }}"#);
    let problems = Document::parse(&document).unwrap_err();
    let paths: Vec<&str> = problems.0.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["fallback_limit.cost", "fallback_limit.name"]);
}

#[test]
fn each_mistake_is_a_line_of_the_error() {
    let problems = Document::parse(r#"{ "rules": 1, "other": 2 }"#).unwrap_err();
    let lines: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(problems.to_string(), lines.join("\n"));
}

/// Otherwise a document of 1 MB would have messages of 1 GB.
#[test]
fn long_names_are_cut_in_paths_and_messages() {
    let settings = |name: &str| {
        let rule = r#""name": "api", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": { "rps": 10 }"#;
        let tiers = format!(r#"{{ "by": "jwt:plan", "settings": {{ "{name}": {{ "rps": 10, "other": 1 }} }} }}"#);
        Document::parse(&format!(r#"{{ "rules": [{{ {rule}, "tiers": {tiers} }}] }}"#)).unwrap_err().0
    };
    let (longest, longer) = ("x".repeat(80), "x".repeat(10_000));
    assert_eq!(settings(&longest)[0].path, format!("rules[0].tiers.settings.{longest}.other"));
    let path = format!(r#"tiers.settings["{longest}…"].other"#);
    assert_eq!(settings(&longer)[0].path, format!("rules[0].{path}"));
    assert!(settings(&longer)[0].message.starts_with(&format!(r#"rule 0 "api": `{path}` must be absent"#)));
}

#[test]
fn a_document_may_begin_with_a_byte_order_mark() {
    let text = r#"{ "rules": [{ "name": "a", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": { "rps": 1 } }] }"#;
    let read = |text: &str| Document::parse(text).map_err(|problems| problems.to_string());
    assert_eq!(read(&format!("\u{feff}{text}")), read(text));
    assert_eq!(read(text).map(|document| document.rules.len()), Ok(1));
}

#[test]
fn the_error_of_malformed_json_has_line_and_column() {
    let problems = Document::parse("{\n  \"rules\": [}").unwrap_err();
    assert_eq!(problems.to_string(), "`document` must be JSON; got expected value at line 2 column 13");
}

#[test]
fn plans_that_are_tiers_have_the_core_s_policies() {
    let document = Document::parse(
        r#"{ "rules": [{
            "name": "api", "limit_keys": ["jwt:sub", "header:X-Project"],
            "algorithm": "fixed_window", "algorithm_config": { "rps": 10, "start": 5, "shards": 2 },
            "tiers": { "by": "jwt:plan", "settings": { "pro": { "rate": 100, "period": 60000, "capacity": 150 } } }
        }] }"#,
    )
    .unwrap();
    let rule = &document.rules[0];
    assert_eq!(rule.keys.iter().map(|key| key.source).collect::<Vec<_>>(), [Source::Jwt, Source::Header]);
    assert_eq!(rule.keys[1].name, "x-project");
    for (tier, rate, period, capacity) in
        [(Some("pro"), 100.0, 60_000.0, 150.0), (Some("free"), 10.0, 1000.0, 10.0), (None, 10.0, 1000.0, 10.0)]
    {
        let policy = rule.policy_of(tier);
        assert_eq!((policy.rate(), policy.period(), policy.capacity()), (rate, period, capacity));
        assert_eq!((policy.kind(), policy.start(), policy.shards()), (Kind::FixedWindow, Some(5.0), 2));
    }
}

#[test]
fn the_start_of_windows_is_written_as_the_package_s_config_has_it() {
    for (start, written) in [(r#""first request""#, Value::from("first request")), ("5", Value::from(5.0))] {
        let config = format!(r#"{{ "rate": 10, "period": 1000, "start": {start} }}"#);
        let rule = format!(
            r#"{{ "name": "api", "limit_keys": [], "algorithm": "fixed_window", "algorithm_config": {config} }}"#
        );
        let document = Document::parse(&format!(r#"{{ "rules": [{rule}] }}"#)).unwrap();
        assert_eq!(serde_json::to_value(&document.rules[0].limit).unwrap()["config"]["start"], written);
    }
}

#[test]
fn the_schema_has_every_field_that_is_read() {
    let schema = schema();
    let Value::Object(rule) = &schema["$defs"]["rule"]["properties"] else { panic!("{schema}") };
    for (field, property) in rule {
        assert!(property.is_object(), "src/schema.rs has no `{field}` of a rule");
    }
    let text = schema.to_string();
    for field in ["rate", "rps", "tokens_per_second", "period", "burst", "capacity", "maxReserved", "start", "shards"] {
        assert!(text.contains(&format!("\"{field}\":{{")), "{field}");
    }
}

#[test]
fn the_schema_describes_each_number_and_with_what_it_is_exclusive() {
    let schema = schema();
    let config = &schema["$defs"]["fixed_window"];
    let Value::Object(properties) = &config["properties"] else { panic!("{config}") };
    let numbers = properties.values().chain([&schema["$defs"]["costSource"]]);
    let described: HashSet<&str> = numbers.filter_map(|number| number["description"].as_str()).collect();
    // Two pairs of names have a description in common: rps and tokens_per_second, burst and capacity.
    assert_eq!(described.len(), properties.len() - 2, "{described:?}");
    assert!(described.iter().all(|text| text.ends_with('.')));
    let block = &schema["$defs"]["block"]["properties"];
    assert!(block["within"]["description"].as_str().unwrap().starts_with("Ms, or a string such as 12h"));
    assert!(block["for"]["anyOf"][0]["description"].as_str().unwrap().starts_with("Length of a block"));
}
