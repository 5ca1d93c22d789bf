//! Reads the shared vectors.

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use tidegate_core::{Config, Decision, FIRST_REQUEST, InputError, Kind, Policy, State};

/// A key's bytes in generalized UTF-8: the only strings here that may hold a lone surrogate.
#[derive(Debug)]
pub(crate) struct Key(pub(crate) Vec<u8>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Key, E> {
                Ok(Key(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// A vector with steps.
#[derive(Deserialize, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) limit: String,
    pub(crate) key: Option<Key>,
    #[serde(default)]
    pub(crate) config: Value,
    pub(crate) steps: Vec<Value>,
}

#[derive(Deserialize)]
struct File<T> {
    vectors: Vec<T>,
}

fn text(name: &str) -> String {
    let path = format!("{}/../../tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn file(name: &str) -> Vec<Case> {
    let File { vectors } = serde_json::from_str(&text(name)).unwrap();
    vectors
}

pub(crate) fn invalid() -> Vec<Value> {
    let File { vectors } = serde_json::from_str(&text("invalid")).unwrap();
    vectors
}

/// The field's number: `None` for a value that only JavaScript has, `Some(None)` where it is absent.
pub(crate) fn given(object: &Value, field: &str) -> Option<Option<f64>> {
    let Some(value) = object.get(field) else { return Some(None) };
    let named = match value.get("$").and_then(Value::as_str) {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some("-0") => Some(-0.0),
        Some(_) => None,
        None => value.as_f64(),
    };
    named.map(Some)
}

pub(crate) fn config(written: &Value) -> Option<Config> {
    let kind = match written["kind"].as_str()? {
        "token bucket" => Kind::TokenBucket,
        "fixed window" => Kind::FixedWindow,
        _ => return None,
    };
    Some(Config {
        kind,
        rate: given(written, "rate")??,
        period: given(written, "period")??,
        capacity: given(written, "capacity")?,
        max_reserved: given(written, "maxReserved")?,
        start: match &written["start"] {
            Value::String(text) if text == "first request" => Some(FIRST_REQUEST),
            // Only JavaScript rejects the number that represents this value in Rust.
            _ => given(written, "start").filter(|start| *start != Some(FIRST_REQUEST))?,
        },
        shards: given(written, "shards")?,
    })
}

pub(crate) fn core_policy(written: &Value) -> Result<Policy, InputError> {
    Policy::new(&config(written).expect("numbers only"))
}

pub(crate) fn state(written: &Value) -> Option<State> {
    State::new(written.get("value")?.as_f64()?, written.get("ts")?.as_f64()?).ok()
}

pub(crate) fn decision(d: &Decision, now: f64, capacity: f64) -> Value {
    let mut out = Map::new();
    out.insert("ok".into(), d.ok.into());
    out.insert("value".into(), d.value.into());
    out.insert("ts".into(), d.ts.into());
    out.insert("remaining".into(), d.remaining().into());
    out.insert("limit".into(), capacity.into());
    if let Some(at) = d.retry_at {
        out.insert("retryAt".into(), at.into());
        out.insert("retryAfter".into(), (at - now).into());
    }
    out.insert("resetAt".into(), d.reset_at.into());
    out.insert("reserved".into(), d.reserved.into());
    if let Some(reason) = d.reason {
        out.insert("reason".into(), reason.as_str().into());
    }
    Value::Object(out)
}

/// Equal in every field and every bit, however a number is written.
pub(crate) fn same(got: &Value, expected: &Value, place: &str) {
    match (got, expected) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert_eq!(a.to_bits(), b.to_bits(), "{a} is not {b}, {place}");
        }
        (Value::Object(a), Value::Object(b)) => {
            let names = |o: &Map<String, Value>| o.keys().cloned().collect::<std::collections::BTreeSet<_>>();
            assert_eq!(names(a), names(b), "{place}");
            for (name, value) in a {
                same(value, &b[name], &format!("{name} of {place}"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{place}");
            a.iter().zip(b).for_each(|(a, b)| same(a, b, place));
        }
        _ => assert_eq!(got, expected, "{place}"),
    }
}
