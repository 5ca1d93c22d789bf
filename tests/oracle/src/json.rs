//! Numbers as the shortest decimal that reads back to the same bits, and the layout of the files.

use serde_json::{Number, Value};

/// A double as a JSON number; integers without a point.
///
/// # Panics
/// On NaN and infinities, which JSON lacks.
#[must_use]
pub fn number(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 && !(x == 0.0 && x.is_sign_negative()) {
        return Value::from(x as i64);
    }
    Value::Number(Number::from_f64(x).expect("a finite number"))
}

/// A number that may be one that JSON lacks.
#[must_use]
pub fn any_number(x: f64) -> Value {
    let name = if x.is_nan() {
        "NaN"
    } else if x == f64::INFINITY {
        "Infinity"
    } else if x == f64::NEG_INFINITY {
        "-Infinity"
    } else if x == 0.0 && x.is_sign_negative() {
        "-0"
    } else {
        return number(x);
    };
    serde_json::json!({ "$": name })
}

/// A file of vectors: one line for each vector's head and for each step.
#[must_use]
pub fn file(about: &str, vectors: &[String]) -> String {
    let about = Value::from(about);
    format!("{{\n\"about\": {about},\n\"vectors\": [\n{}\n]\n}}\n", vectors.join(",\n"))
}

/// One vector: its head's members (already JSON), then its steps.
#[must_use]
pub fn vector(head: &[(&str, String)], steps: &[Value]) -> String {
    let head: Vec<String> = head.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
    let steps: Vec<String> = steps.iter().map(|step| format!("  {step}")).collect();
    format!("{{{},\"steps\":[\n{}\n]}}", head.join(","), steps.join(",\n"))
}
