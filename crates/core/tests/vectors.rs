//! The core answers every shared vector to the bit.

mod vector;

use serde_json::{Value, json};
use std::collections::HashMap;
use tidegate_core::{
    Decision, Outcome, Pool, Request, State, check_count, check_now, decode, default_start, encode, pick_two, take_all,
    take_better,
};
use vector::{Case, config, core_policy, decision, file, state};

fn number(step: &Value, field: &str) -> Option<f64> {
    step.get(field).and_then(Value::as_f64)
}

/// One limit's shards (or its only state), and the calls on them.
struct Store {
    states: Vec<Option<State>>,
}

fn keep(stored: &mut Option<State>, outcome: Outcome) -> Decision {
    if outcome.write.is_some() {
        *stored = outcome.write;
    }
    outcome.decision
}

impl Store {
    fn call(&mut self, policy: &tidegate_core::Policy, start: f64, step: &Value) -> Value {
        let op = step["op"].as_str().unwrap();
        let now = check_now(step["now"].as_f64().unwrap()).unwrap();
        let count = check_count(number(step, "count").unwrap_or(1.0)).unwrap();
        let reserve = step.get("reserve").is_some();
        let shown = |d: Decision| decision(&d, now, policy.capacity());
        let point = |s: State| json!({ "value": s.value(), "ts": s.ts() });
        if op == "reset" {
            self.states.fill(None);
            return Value::Null;
        }
        if let [stored] = self.states.as_mut_slice() {
            let rule = policy.rule(start);
            return match op {
                "take" => shown(keep(stored, rule.take(*stored, now, count, reserve))),
                "check" => shown(rule.check(*stored, now, count, reserve)),
                "give" => shown(keep(stored, rule.give(*stored, now, count))),
                "charge" => shown(keep(stored, rule.charge(*stored, now, count))),
                "project" => point(rule.project(*stored, now)),
                other => panic!("{other}"),
            };
        }
        let mut scratch = self.states.clone();
        match op {
            "project" => point(Pool::new(policy, start, &mut scratch, now).state()),
            "give" | "charge" => {
                let mut pool = Pool::new(policy, start, &mut scratch, now);
                let (answer, writes) = if op == "give" { pool.give(count) } else { pool.charge(count) };
                if writes {
                    self.states = scratch;
                }
                shown(answer)
            }
            _ => {
                let (a, b) = pick_two(step["random"].as_f64().unwrap(), policy.shards());
                let pair = [scratch[a as usize], scratch[b as usize]];
                let (which, outcome) = take_better(policy, start, pair, now, count);
                let answer = if outcome.decision.ok {
                    keep(&mut scratch[if which == 0 { a } else { b } as usize], outcome)
                } else {
                    let answer = Pool::new(policy, start, &mut scratch, now).take(count, reserve);
                    if !answer.ok || count == 0.0 {
                        scratch.clone_from(&self.states);
                    }
                    answer
                };
                if op == "take" {
                    self.states = scratch;
                }
                shown(answer)
            }
        }
    }
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
    let shards = number(&written, "shards").unwrap_or(1.0) as usize;
    let mut store = Store { states: vec![None; shards] };
    for (i, step) in case.steps.iter().enumerate() {
        let place = format!("{}, step {i}: {step}", case.name);
        if let Some(replaced) = step.get("config") {
            written = replaced.clone();
        }
        let policy = core_policy(&written).unwrap();
        let start = default_start(&case.limit, case.key.as_ref().map(|key| key.0.as_slice()), policy.period());
        let got = store.call(&policy, start, step);
        vector::same(&got, &step["expect"], &place);
        match step.get("states") {
            Some(expected) => {
                let expected = expected.as_array().unwrap();
                assert_eq!(expected.len(), shards, "{place}");
                for (stored, expected) in store.states.iter().zip(expected) {
                    same_state(*stored, expected, &place);
                }
            }
            None => same_state(store.states[0], &step["state"], &place),
        }
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
    reservations: "reserve",
    clocks: "clock",
    config_changes: "config-change",
    precision: "precision",
    shards: "shards",
    operations: "operations",
    defaults: "defaults",
    edges_where_convex_was_measured_to_go_wrong: "convex",
}

#[test]
fn limit_all() {
    for case in file("limit-all") {
        let mut stored: HashMap<(String, Option<String>), State> = HashMap::new();
        for (i, step) in case.steps.iter().enumerate() {
            let place = format!("{}, step {i}: {step}", case.name);
            let now = step["now"].as_f64().unwrap();
            let mut sums: HashMap<(String, Option<String>), f64> = HashMap::new();
            let (mut asked, mut identities, mut capacities) = (Vec::new(), Vec::new(), Vec::new());
            for request in step["requests"].as_array().unwrap() {
                let name = request["limit"].as_str().unwrap().to_owned();
                let key = request.get("key").map(|key| key.as_str().unwrap().to_owned());
                let policy = core_policy(&request["config"]).unwrap();
                let start = default_start(&name, key.as_ref().map(|key| key.as_bytes()), policy.period());
                let identity = (name, key);
                let sum = sums.entry(identity.clone()).or_insert(0.0);
                *sum += number(request, "count").unwrap_or(1.0);
                let state = stored.get(&identity).copied();
                let reserve = request.get("reserve").is_some();
                asked.push(Request { rule: policy.rule(start), state, count: *sum, reserve });
                identities.push(identity);
                capacities.push(policy.capacity());
            }
            let blank = asked.first().map(|r| r.rule.take(None, now, 0.0, false));
            let mut outcomes = vec![blank; asked.len()].into_iter().flatten().collect::<Vec<_>>();
            let (ok, retry_at) = take_all(&asked, now, &mut outcomes);
            let mut got = json!({ "ok": ok });
            if let Some(at) = retry_at {
                got["retryAt"] = at.into();
                got["retryAfter"] = (at - now).into();
            }
            let decisions = outcomes.iter().zip(&capacities).map(|(o, capacity)| decision(&o.decision, now, *capacity));
            got["decisions"] = decisions.collect::<Vec<_>>().into();
            vector::same(&got, &step["expect"], &place);
            for (identity, outcome) in identities.iter().zip(&outcomes) {
                if let Some(write) = outcome.write {
                    assert!(ok, "{place}");
                    stored.insert(identity.clone(), write);
                }
            }
            let expected = step["states"].as_array().unwrap();
            assert_eq!(expected.len(), identities.len(), "{place}");
            for (identity, expected) in identities.iter().zip(expected) {
                same_state(stored.get(identity).copied(), expected, &place);
            }
        }
    }
}

#[test]
fn invalid_numbers_are_refused_in_the_same_words() {
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
        assert_eq!(case["field"].as_str(), Some(tidegate_core::Bound::of(error.field).name));
        ran += 1;
    }
    assert!(ran > 70, "only {ran} ran");
}
