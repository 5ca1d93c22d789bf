//! A history of calls on one limit, run by both oracles in step and written down as a vector.

use crate::exact::{self, Answer, Exact, rational};
use crate::exact_pool::ExactShards;
use crate::json::{number, vector};
use crate::key::quoted;
use crate::limit::{Kind, Limit};
use crate::naive::{self, Decision, State};
use crate::naive_pool::Shards;
use crate::random::Random;
use crate::tolerance::{Asked, Tolerance};
use serde_json::{Map, Value, json};

/// A history under way.
#[derive(Debug)]
pub struct History {
    name: String,
    key: Option<Vec<u16>>,
    first: Limit,
    limit: Limit,
    announced: Option<Limit>,
    states: Vec<Option<State>>,
    exact: Vec<Option<exact::State>>,
    tolerance: Tolerance,
    random: Random,
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
        let shards = limit.shards.unwrap_or(1.0) as usize;
        History {
            name: name.into(),
            limit: limit.settled("chat", key.as_deref()),
            key,
            first: limit,
            announced: None,
            states: vec![None; shards],
            exact: vec![None; shards],
            tolerance: Tolerance::default(),
            random: Random(0x7469_6465),
            steps: Vec::new(),
            last: None,
        }
    }

    /// Replaces the config from the next step on.
    pub fn config(&mut self, limit: Limit) {
        assert_eq!(limit.shards, self.limit.shards, "a change of `shards` is a matter of the store");
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

    /// When the last decision said to come back.
    #[must_use]
    pub fn retry_at(&self) -> f64 {
        self.last().retry_at.expect("a retryAt")
    }

    /// What is stored, of the only shard.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.states[0]
    }

    /// `take`.
    pub fn take(&mut self, now: f64, count: f64) -> Decision {
        self.step("take", now, Some(count), false)
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

    /// Forgets the state.
    pub fn reset(&mut self, now: f64) {
        self.states.fill(None);
        self.exact.fill(None);
        self.push("reset", now, None, false, None, Value::Null);
    }

    /// `project`.
    pub fn project(&mut self, now: f64) {
        let limit = self.limit;
        let (got, exact) = if limit.shards.is_some_and(|n| n > 1.0) {
            let mut states = self.states.clone();
            let shards = Shards { whole: limit, states: &mut states, now };
            let all = ExactShards { whole: Exact::new(&limit), states: &mut self.exact, now: now as i128 };
            (shards.sum(shards.states), all.sum())
        } else {
            let exact = Exact::new(&limit).refill(self.exact[0].as_ref(), now as i128);
            (naive::refill(&limit, self.states[0], now), exact)
        };
        self.tolerance.step(self.states.len() as f64, limit.most());
        assert!(self.tolerance.same(got.value, &exact.value) && got.ts == exact.ts as f64, "{got:?} {exact:?}");
        let expect = json!({ "value": number(got.value), "ts": number(got.ts) });
        self.push("project", now, None, false, None, expect);
    }

    /// Any call with a decision. A `count` left out is 1.
    ///
    /// # Panics
    /// Where the two oracles disagree by more than rounding.
    pub fn step(&mut self, op: &str, now: f64, count: Option<f64>, reserve: bool) -> Decision {
        let tokens = count.unwrap_or(1.0);
        let sharded = self.states.len() > 1;
        let random =
            (sharded && matches!(op, "take" | "check")).then(|| (self.random.unit() * 1024.0).floor() / 1024.0);
        let before = (self.states.clone(), self.exact.clone());
        let (got, exact) = if sharded {
            self.on_shards(op, now, tokens, reserve, random.unwrap_or(0.0))
        } else {
            self.on_one(op, now, tokens, reserve)
        };
        if op == "check" {
            (self.states, self.exact) = before;
        }
        let (n, limit) = (self.states.len() as f64, self.limit);
        self.tolerance.step(n, limit.most().max(tokens).max(got.value.abs()));
        let grid = if limit.kind == Kind::TokenBucket { 1.0 } else { limit.period };
        let ms_per_token = n * limit.period / limit.rate;
        let asked = Asked { count: tokens, floor: limit.floor(reserve), ms_per_token, grid };
        match self.tolerance.compare(&got, &exact, asked) {
            Ok(true) => {}
            Ok(false) => self.exact = self.states.iter().map(|s| s.map(|s| exact::State::of(s.value, s.ts))).collect(),
            Err(text) => panic!("{}, step {}: {text}", self.name, self.steps.len()),
        }
        self.last = Some(got);
        let expect = decision_json(&got, now, limit.most());
        self.push(op, now, count, reserve, random, expect);
        got
    }

    fn on_one(&mut self, op: &str, now: f64, tokens: f64, reserve: bool) -> (Decision, Answer) {
        let (limit, exact, ms) = (self.limit, Exact::new(&self.limit), now as i128);
        let (stored, twin, count) = (self.states[0], self.exact[0].as_ref(), rational(tokens));
        let ((got, write), answer) = match op {
            "give" => (naive::give(&limit, stored, now, tokens), exact.give(twin, ms, &count)),
            "charge" => (naive::charge(&limit, stored, now, tokens), exact.charge(twin, ms, &count)),
            _ => (naive::take(&limit, stored, now, tokens, reserve), exact.take(twin, ms, &count, reserve)),
        };
        self.states[0] = write.or(stored);
        if let Some(write) = answer.write.clone() {
            self.exact[0] = Some(write);
        }
        (got, answer)
    }

    fn on_shards(&mut self, op: &str, now: f64, tokens: f64, reserve: bool, random: f64) -> (Decision, Answer) {
        let mut shards = Shards { whole: self.limit, states: &mut self.states, now };
        let mut exact = ExactShards { whole: Exact::new(&self.limit), states: &mut self.exact, now: now as i128 };
        let count = rational(tokens);
        match op {
            "give" => (shards.give(tokens), exact.give(&count)),
            "charge" => (shards.charge(tokens), exact.charge(&count)),
            _ => {
                let pair = shards.better(random);
                let (got, from_one) = shards.take(random, tokens, reserve);
                self.tolerance.step(1.0, tokens.max(self.limit.most()));
                let slack = rational(self.tolerance.tokens());
                (got, exact.take(pair, from_one, &count, reserve, &slack))
            }
        }
    }

    fn push(&mut self, op: &str, now: f64, count: Option<f64>, reserve: bool, random: Option<f64>, expect: Value) {
        let mut step = Map::new();
        step.insert("op".into(), op.into());
        step.insert("now".into(), number(now));
        if let Some(count) = count {
            step.insert("count".into(), number(count));
        }
        if reserve {
            step.insert("reserve".into(), true.into());
        }
        if let Some(random) = random {
            step.insert("random".into(), number(random));
        }
        if let Some(config) = self.announced.take() {
            step.insert("config".into(), config.to_json());
        }
        step.insert("expect".into(), expect);
        if self.states.len() > 1 {
            let states = self.states.iter().map(|s| state_json(*s)).collect();
            step.insert("states".into(), Value::Array(states));
        } else {
            step.insert("state".into(), state_json(self.states[0]));
        }
        self.steps.push(Value::Object(step));
    }

    /// The vector.
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
