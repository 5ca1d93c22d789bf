//! The core reproduces every shared vector to the bit.

mod vector;

use serde_json::{Value, json};
use tidegate_core::{
    Decision, Outcome, Policy, State, check_count, check_for, check_now, decode, default_start, encode,
};
use vector::{Case, config, core_policy, file, state};

fn number(step: &Value, field: &str) -> Option<f64> {
    step.get(field).and_then(Value::as_f64)
}

fn keep(stored: &mut Option<State>, outcome: Outcome) -> Decision {
    if outcome.write.is_some() {
        *stored = outcome.write;
    }
    outcome.decision
}

fn call(stored: &mut Option<State>, policy: &Policy, start: f64, step: &Value) -> Value {
    let now = check_now(step["now"].as_f64().unwrap()).unwrap();
    let count = check_count(number(step, "count").unwrap_or(1.0)).unwrap();
    let reserve = step.get("reserve").is_some();
    let bucket = policy.bucket(start);
    let decision = match step["op"].as_str().unwrap() {
        "reset" => {
            *stored = None;
            return Value::Null;
        }
        "project" => {
            let state = bucket.refill(*stored, now);
            return json!({ "value": state.value(), "ts": state.ts() });
        }
        "take" => keep(stored, bucket.take(*stored, now, count, reserve)),
        "check" => bucket.check(*stored, now, count, reserve),
        "give" => keep(stored, bucket.give(*stored, now, count)),
        "charge" => keep(stored, bucket.charge(*stored, now, count)),
        "block" => keep(stored, bucket.block(*stored, now, check_for(number(step, "for").unwrap()).unwrap())),
        other => panic!("{other}"),
    };
    vector::decision(&decision, now, policy.capacity())
}

fn same_state(stored: Option<State>, expected: &Value, place: &str) {
    let Some(stored) = stored else {
        assert!(expected.is_null(), "{place}: {expected}");
        return;
    };
    let bits: String = encode(stored).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(expected["bits"].as_str(), Some(bits.as_str()), "{place}: {stored:?} is not {expected}");
    assert_eq!(state(expected), Some(stored), "{place}");
    assert_eq!(decode(&encode(stored)), Ok(stored), "{place}");
}

fn run(case: &Case) {
    let mut written = case.config.clone();
    let mut stored = None;
    for (i, step) in case.steps.iter().enumerate() {
        let place = format!("{}, step {i}: {step}", case.name);
        if let Some(replaced) = step.get("config") {
            written = replaced.clone();
        }
        let policy = core_policy(&written).unwrap();
        let start = default_start(&case.limit, case.key.as_ref().map(|key| key.0.as_slice()), policy.period());
        let got = call(&mut stored, &policy, start, step);
        vector::same(&got, &step["expect"], &place);
        same_state(stored, &step["state"], &place);
    }
}

macro_rules! histories {
    ($($test:ident: $file:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            let cases = file($file);
            assert!(cases.len() > 10);
            cases.iter().for_each(run);
        }
    )*};
}

histories! {
    token_buckets: "token-bucket",
    fixed_windows: "fixed-window",
    first_request_windows: "first-request",
    reservations: "reserve",
    clocks: "clock",
    config_changes: "config-change",
    precision: "precision",
    shards: "shards",
    operations: "operations",
    blocks: "block",
    defaults: "defaults",
    edges_where_convex_was_measured_to_go_wrong: "convex",
}

#[test]
fn invalid_numbers_are_rejected_with_the_message_of_the_vectors() {
    let mut ran = 0;
    for case in vector::invalid() {
        let call = case.get("call").cloned().unwrap_or(json!({}));
        let Some(written) = config(&case["config"]) else { continue };
        let (Some(count), Some(now)) = (vector::given(&call, "count"), vector::given(&call, "now")) else { continue };
        let error = tidegate_core::Policy::new(&written)
            .map(|_| ())
            .and_then(|()| count.map_or(Ok(()), |count| check_count(count).map(|_| ())))
            .and_then(|()| now.map_or(Ok(()), |now| check_now(now).map(|_| ())))
            .expect_err(&case.to_string());
        assert_eq!(case["error"].as_str(), Some(error.to_string().as_str()));
        assert_eq!(case["field"].as_str(), Some(error.field.bound().name));
        ran += 1;
    }
    assert!(ran > 70, "only {ran} ran");
}
