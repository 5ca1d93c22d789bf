use crate::json::any_number;
use serde_json::{Map, Value, json};

pub(crate) const ABOUT: &str = "Bad input: the error names the field, the rule and the value, before any state is \
read. {\"$\": name} is a number that JSON lacks, such as NaN. Other JavaScript values are raw JSON or {\"$\": \
description}, and only JavaScript hosts run those. Without `call`, the config alone is the mistake.";

const TOKENS: &str = "a finite number of tokens from 0 to 1099511627776";
const FIELDS: [(&str, &str); 8] = [
    ("rate", "a finite number of tokens above 0 and up to 1099511627776"),
    ("period", "an integer of ms from 1 to 1099511627776"),
    ("capacity", TOKENS),
    ("maxReserved", TOKENS),
    ("start", "\"first request\", or an integer of ms from -4503599627370496 to 4503599627370496"),
    ("shards", "an integer from 1 to 65536"),
    ("count", TOKENS),
    ("now", "a number of ms since the Unix epoch from 0 to 4503599627370496"),
];

/// As JavaScript's `String` writes these.
fn shown(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let size = x.abs();
    if size >= 1e21 {
        format!("{x:e}").replace('e', "e+")
    } else if x != 0.0 && size < 1e-6 {
        format!("{x:e}")
    } else {
        format!("{}", x + 0.0)
    }
}

fn one(field: &str, value: Value, shown: &str, name: &str) -> String {
    let is_time = value.is_string() && matches!(field, "period" | "start");
    let text = if is_time { ", or a string such as \"15m\"" } else { "" };
    let expects = FIELDS.iter().find(|(name, _)| *name == field).expect("a field").1;
    let mut config = Map::new();
    config.insert("kind".into(), if field == "start" { "fixed window" } else { "token bucket" }.into());
    config.insert("rate".into(), 10.into());
    config.insert("period".into(), 1000.into());
    let mut vector = Map::new();
    vector.insert("name".into(), format!("{field}: {name}").into());
    if matches!(field, "count" | "now") {
        let mut call = Map::new();
        call.insert("now".into(), 1000.into());
        call.insert(field.into(), value);
        vector.insert("config".into(), Value::Object(config));
        vector.insert("call".into(), Value::Object(call));
    } else {
        config.insert(field.into(), value);
        vector.insert("config".into(), Value::Object(config));
    }
    vector.insert("field".into(), field.into());
    vector.insert("error".into(), format!("`{field}` must be {expects}{text}; got {shown}").into());
    Value::Object(vector).to_string()
}

pub(crate) fn vectors() -> Vec<String> {
    let most = 1_099_511_627_776.0;
    let end = 4_503_599_627_370_496.0;
    let mut out = Vec::new();
    for (field, _) in FIELDS {
        let mut bad = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e300, 1e300];
        bad.extend(match field {
            "rate" => vec![0.0, -0.0, -1.0, -5e-324, most + 0.25],
            "period" => vec![0.0, -0.0, -1000.0, 0.5, 1000.5, most + 1.0],
            "start" => vec![0.5, -1.5, end + 1.0, -end - 1.0],
            "shards" => vec![0.0, -0.0, -1.0, 0.4, 2.6, 65_537.0],
            "now" => vec![-1.0, -0.5, end + 1.0],
            _ => vec![-1.0, -5e-324, -0.5, most + 0.25],
        });
        for x in bad {
            let name = if x == 0.0 && x.is_sign_negative() { "-0".to_owned() } else { shown(x) };
            out.push(one(field, any_number(x), &shown(x), &name));
        }
        for (value, shown, name) in [
            (json!("10"), "\"10\"", "a string"),
            (json!(""), "\"\"", "an empty string"),
            (json!(null), "null", "null"),
            (json!(true), "true", "true"),
            (json!([10]), "an array", "an array"),
            (json!({ "valueOf": 10 }), "an object", "an object"),
            (json!({ "$": "1n" }), "1n", "a bigint"),
            (json!({ "$": "valueOf" }), "an object", "an object with valueOf"),
            (json!({ "$": "function" }), "a function", "a function"),
            (json!({ "$": "symbol" }), "a symbol", "a symbol"),
        ] {
            out.push(one(field, value, shown, name));
        }
        if matches!(field, "rate" | "period") {
            out.push(one(field, json!({ "$": "undefined" }), "undefined", "undefined"));
        }
    }
    out
}
