//! A history of calls on one limit, evaluated by both oracles and recorded as a vector.

use crate::exact::{self, Answer, Exact, rational};
use crate::json::{number, vector};
use crate::key::quoted;
use crate::limit::{Kind, Limit};
use crate::naive::{self, Decision, State};
use crate::tolerance::{Query, Tolerance};
use serde_json::{Map, Value, json};

/// A history in progress.
#[derive(Debug)]
pub struct History {
    name: String,
    key: Option<Vec<u16>>,
    first: Limit,
    limit: Limit,
    announced: Option<Limit>,
    state: Option<State>,
    exact: Option<exact::State>,
    tolerance: Tolerance,
    steps: Vec<Value>,
    last: Option<Decision>,
}

/// A state as the vectors write it.
#[must_use]
pub fn state_json(state: Option<State>) -> Value {
    let Some(State { value, ts }) = state else { return Value::Null };
    let bytes = value.to_le_bytes().into_iter().chain(ts.to_le_bytes());
    let bits: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    json!({ "value": number(value), "ts": number(ts), "bits": bits })
}

/// A decision as the vectors write it.
#[must_use]
pub fn decision_json(d: &Decision, now: f64, capacity: f64) -> Value {
    let mut out = Map::new();
    out.insert("ok".into(), d.ok.into());
    out.insert("value".into(), number(d.value));
    out.insert("ts".into(), number(d.ts));
    out.insert("remaining".into(), number(d.value.floor().max(0.0)));
    out.insert("limit".into(), number(capacity));
    if let Some(at) = d.retry_at {
        out.insert("retryAt".into(), number(at));
        out.insert("retryAfter".into(), number(at - now));
    }
    out.insert("resetAt".into(), number(d.reset_at));
    out.insert("reserved".into(), d.reserved.into());
    if let Some(reason) = d.reason {
        out.insert("reason".into(), reason.into());
    }
    Value::Object(out)
}

impl History {
    /// A history of the limit `chat` without a key.
    #[must_use]
    pub fn new(name: &str, limit: Limit) -> History {
        History::keyed(name, None, limit)
    }

    /// A history of one key of the limit `chat`.
    #[must_use]
    pub fn keyed(name: &str, key: Option<Vec<u16>>, limit: Limit) -> History {
        History {
            name: name.into(),
            limit: limit.settled("chat", key.as_deref()),
            key,
            first: limit,
            announced: None,
            state: None,
            exact: None,
            tolerance: Tolerance::default(),
            steps: Vec::new(),
            last: None,
        }
    }

    /// Replaces the config from the next step on.
    pub fn config(&mut self, limit: Limit) {
        self.limit = limit.settled("chat", self.key.as_deref());
        self.announced = Some(limit);
    }

    /// The last decision.
    ///
    /// # Panics
    /// Before the first.
    #[must_use]
    pub fn last(&self) -> Decision {
        self.last.expect("a decision")
    }

    /// The `retry_at` of the last decision.
    #[must_use]
    pub fn retry_at(&self) -> f64 {
        self.last().retry_at.expect("a retryAt")
    }

    /// The stored state.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.state
    }

    /// `take`.
    pub fn take(&mut self, now: f64, count: f64) -> Decision {
        self.step("take", now, Some(count), false)
    }

    /// `take`s, each so many ms after `from`, of so many tokens.
    pub fn takes(&mut self, from: f64, calls: &[(f64, f64)]) {
        for &(after, count) in calls {
            self.take(from + after, count);
        }
    }

    /// `take` one ms before the `retry_at` of the last decision, and at it; returns it.
    pub fn around_retry(&mut self, count: f64) -> f64 {
        let at = self.retry_at();
        self.take(at - 1.0, count);
        self.take(at, count);
        at
    }

    /// [`History::around_retry`] where the last decision has a `retry_at`.
    pub fn around_any_retry(&mut self, count: f64) {
        if self.last().retry_at.is_some() {
            self.around_retry(count);
        }
    }

    /// `take`, at most so often, until it is denied; then `take` of all that it holds, around its `retry_at`, which it returns.
    pub fn emptied(&mut self, now: f64, count: f64, times: usize) -> f64 {
        for _ in 0..times {
            if !self.take(now, count).ok {
                break;
            }
        }
        let most = self.limit.most();
        self.take(now, most);
        self.around_retry(most)
    }

    /// `take` with `reserve`.
    pub fn reserve(&mut self, now: f64, count: f64) -> Decision {
        self.step("take", now, Some(count), true)
    }

    /// `check`.
    pub fn check(&mut self, now: f64, count: f64) -> Decision {
        self.step("check", now, Some(count), false)
    }

    /// `give`.
    pub fn give(&mut self, now: f64, count: f64) -> Decision {
        self.step("give", now, Some(count), false)
    }

    /// `charge`.
    pub fn charge(&mut self, now: f64, count: f64) -> Decision {
        self.step("charge", now, Some(count), false)
    }

    /// `block` for `ms`.
    pub fn block(&mut self, now: f64, ms: f64) -> Decision {
        self.step("block", now, Some(ms), false)
    }

    /// Removes the state.
    pub fn reset(&mut self, now: f64) {
        (self.state, self.exact) = (None, None);
        self.push("reset", now, None, false, Value::Null);
    }

    /// `project`.
    pub fn project(&mut self, now: f64) {
        let limit = self.limit;
        let exact = Exact::new(&limit).refill(self.exact.as_ref(), now as i128);
        let got = naive::refill(&limit, self.state, now);
        self.tolerance.step(1.0, limit.most());
        assert!(self.tolerance.same(got.value, &exact.value) && got.ts == exact.ts as f64, "{got:?} {exact:?}");
        let expect = json!({ "value": number(got.value), "ts": number(got.ts) });
        self.push("project", now, None, false, expect);
    }

    /// Any call with a decision. A `count` left out is 1; that of a `block` is its ms.
    ///
    /// # Panics
    /// Where the two oracles disagree by more than rounding.
    pub fn step(&mut self, op: &str, now: f64, count: Option<f64>, reserve: bool) -> Decision {
        let tokens = count.unwrap_or(1.0);
        let before = (self.state, self.exact.clone());
        let (got, exact) = self.decide(op, now, tokens, reserve);
        if op == "check" {
            (self.state, self.exact) = before;
        }
        let limit = self.limit;
        // A block's correction is up to 4 ulp.
        let steps = if op == "block" { 3.0 } else { 1.0 };
        self.tolerance.step(steps, limit.most().max(tokens).max(got.value.abs()));
        let grid = if limit.kind == Kind::TokenBucket { 1.0 } else { limit.period };
        let query = Query { count: tokens, floor: limit.floor(reserve), ms_per_token: limit.period / limit.rate, grid };
        match self.tolerance.compare(&got, &exact, query) {
            Ok(true) => {}
            Ok(false) => self.exact = self.state.map(|s| exact::State::of(s.value, s.ts)),
            Err(text) => panic!("{}, step {}: {text}", self.name, self.steps.len()),
        }
        self.last = Some(got);
        let expect = decision_json(&got, now, limit.most());
        self.push(op, now, count, reserve, expect);
        got
    }

    fn decide(&mut self, op: &str, now: f64, tokens: f64, reserve: bool) -> (Decision, Answer) {
        let (limit, exact, ms) = (self.limit, Exact::new(&self.limit), now as i128);
        let (stored, twin, count) = (self.state, self.exact.as_ref(), rational(tokens));
        let ((got, write), answer) = match op {
            "give" => (naive::give(&limit, stored, now, tokens), exact.give(twin, ms, &count)),
            "block" => (naive::block(&limit, stored, now, tokens), exact.block(twin, ms, tokens as i128)),
            "charge" => (naive::charge(&limit, stored, now, tokens), exact.charge(twin, ms, &count)),
            _ => (naive::take(&limit, stored, now, tokens, reserve), exact.take(twin, ms, &count, reserve)),
        };
        self.state = write.or(stored);
        if let Some(write) = answer.write.clone() {
            self.exact = Some(write);
        }
        (got, answer)
    }

    fn push(&mut self, op: &str, now: f64, count: Option<f64>, reserve: bool, expect: Value) {
        let mut step = Map::new();
        step.insert("op".into(), op.into());
        step.insert("now".into(), number(now));
        if let Some(count) = count {
            step.insert(if op == "block" { "for" } else { "count" }.into(), number(count));
        }
        if reserve {
            step.insert("reserve".into(), true.into());
        }
        if let Some(config) = self.announced.take() {
            step.insert("config".into(), config.to_json());
        }
        step.insert("expect".into(), expect);
        step.insert("state".into(), state_json(self.state));
        self.steps.push(Value::Object(step));
    }

    /// The vector as JSON.
    #[must_use]
    pub fn finish(self) -> String {
        let mut head = vec![("name", Value::from(self.name).to_string()), ("limit", "\"chat\"".into())];
        if let Some(key) = &self.key {
            head.push(("key", quoted(key)));
        }
        head.push(("config", self.first.to_json().to_string()));
        vector(&head, &self.steps)
    }
}
