use super::TODAY;
use crate::history::{decision_json, state_json};
use crate::json::{number, vector};
use crate::limit::Limit;
use crate::naive::{self, Decision, State};
use crate::random::Random;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub(crate) const ABOUT: &str = "Several limits, all or nothing. Requests on one limit and key are one request for \
their sum, which may be reserved only if each of them sets `reserve`; each has the decision on that sum. If one is \
denied, nothing is written, each decision is that of a check of its sum, and retryAt is the latest of the denials, \
absent if one of them has none. If all are granted, retryAt is the latest of the reservations.";

#[derive(Clone)]
struct Request {
    name: &'static str,
    key: Option<&'static str>,
    limit: Limit,
    count: f64,
    reserve: bool,
}

fn request(name: &'static str, limit: Limit, count: f64) -> Request {
    Request { name, key: None, limit, count, reserve: false }
}

impl Request {
    fn key(self, key: &'static str) -> Request {
        Request { key: Some(key), ..self }
    }

    fn reserve(self) -> Request {
        Request { reserve: true, ..self }
    }

    fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("limit".into(), self.name.into());
        if let Some(key) = self.key {
            out.insert("key".into(), key.into());
        }
        out.insert("config".into(), self.limit.to_json());
        if self.count != 1.0 {
            out.insert("count".into(), number(self.count));
        }
        if self.reserve {
            out.insert("reserve".into(), true.into());
        }
        Value::Object(out)
    }
}

type Identity = (&'static str, Option<&'static str>);

struct Story {
    name: String,
    stored: HashMap<Identity, State>,
    steps: Vec<Value>,
}

impl Story {
    fn new(name: &str) -> Story {
        Story { name: name.into(), stored: HashMap::new(), steps: Vec::new() }
    }

    fn take_all(&mut self, now: f64, requests: &[Request]) -> Option<f64> {
        // Requests on one limit and key are one request for their sum, reserved where each of them may be.
        let mut answers: Vec<(Decision, Option<State>)> = Vec::new();
        for r in requests {
            let identity = (r.name, r.key);
            let same = || requests.iter().filter(|other| (other.name, other.key) == identity);
            let sum = same().fold(0.0, |sum, other| sum + other.count);
            let reserve = same().all(|other| other.reserve);
            let key = r.key.map(|key| key.encode_utf16().collect::<Vec<u16>>());
            let limit = r.limit.settled(r.name, key.as_deref());
            answers.push(naive::take(&limit, self.stored.get(&identity).copied(), now, sum, reserve));
        }
        let ok = answers.iter().all(|(d, _)| d.ok);
        if ok {
            for (r, (_, write)) in requests.iter().zip(&answers) {
                if let Some(state) = write {
                    self.stored.insert((r.name, r.key), *state);
                }
            }
        }
        let deciding: Vec<Option<f64>> = answers.iter().filter(|(d, _)| d.ok == ok).map(|(d, _)| d.retry_at).collect();
        let latest = deciding.iter().flatten().copied().reduce(f64::max);
        let retry_at = if !ok && deciding.contains(&None) { None } else { latest };
        let mut expect = Map::new();
        expect.insert("ok".into(), ok.into());
        if let Some(at) = retry_at {
            expect.insert("retryAt".into(), number(at));
            expect.insert("retryAfter".into(), number(at - now));
        }
        let decisions = requests.iter().zip(&answers).map(|(r, (d, _))| decision_json(d, now, r.limit.most()));
        expect.insert("decisions".into(), Value::Array(decisions.collect()));
        let states = requests.iter().map(|r| state_json(self.stored.get(&(r.name, r.key)).copied()));
        self.steps.push(json!({
            "op": "takeAll",
            "now": number(now),
            "requests": requests.iter().map(Request::to_json).collect::<Vec<_>>(),
            "expect": expect,
            "states": states.collect::<Vec<_>>(),
        }));
        retry_at
    }

    fn finish(self) -> String {
        vector(&[("name", Value::from(self.name).to_string())], &self.steps)
    }
}

pub(crate) fn vectors() -> Vec<String> {
    let second = Limit::bucket(10.0, 1000.0);
    let minute = Limit::window(100.0, 60_000.0).start(0.0);
    let mut out = Vec::new();
    let mut s = Story::new("all are granted");
    s.take_all(TODAY, &[request("perSecond", second, 3.0), request("perMinute", minute, 3.0).key("user:1")]);
    s.take_all(TODAY, &[request("perSecond", second, 3.0), request("perMinute", minute, 3.0).key("user:2")]);
    out.push(s.finish());
    let mut s = Story::new("one denies: neither is touched, and retryAt is the denier's");
    s.take_all(TODAY, &[request("perSecond", second, 9.0), request("perMinute", minute, 9.0)]);
    let at = s.take_all(TODAY, &[request("perSecond", second, 5.0), request("perMinute", minute, 5.0)]).unwrap();
    s.take_all(at - 1.0, &[request("perSecond", second, 5.0), request("perMinute", minute, 5.0)]);
    s.take_all(at, &[request("perSecond", second, 5.0), request("perMinute", minute, 5.0)]);
    out.push(s.finish());
    let mut s = Story::new("both deny: the later retryAt");
    s.take_all(TODAY, &[request("perSecond", second, 10.0), request("perMinute", minute, 100.0)]);
    let at = s.take_all(TODAY, &[request("perSecond", second, 1.0), request("perMinute", minute, 1.0)]).unwrap();
    s.take_all(at - 1.0, &[request("perSecond", second, 1.0), request("perMinute", minute, 1.0)]);
    s.take_all(at, &[request("perSecond", second, 1.0), request("perMinute", minute, 1.0)]);
    out.push(s.finish());
    let mut s = Story::new("one can never be granted: no retryAt");
    s.take_all(TODAY, &[request("perSecond", second, 10.0)]);
    s.take_all(TODAY, &[request("perSecond", second, 1.0), request("perMinute", minute, 101.0)]);
    s.take_all(TODAY, &[request("perSecond", second, 11.0), request("perMinute", minute, 1.0)]);
    out.push(s.finish());
    let mut s = Story::new("the same identity twice asks for the sum");
    s.take_all(TODAY, &[request("a", second, 4.0), request("a", second, 6.0)]);
    let at = s.take_all(TODAY + 500.0, &[request("a", second, 4.0), request("a", second, 2.0)]).unwrap();
    s.take_all(at - 1.0, &[request("a", second, 4.0), request("a", second, 2.0)]);
    s.take_all(at, &[request("a", second, 4.0), request("a", second, 2.0)]);
    s.take_all(at + 5000.0, &[request("a", second, 6.0), request("a", second, 6.0)]);
    out.push(s.finish());
    let mut s = Story::new("the same limit with other keys is another identity");
    s.take_all(
        TODAY,
        &[request("a", second, 6.0), request("a", second, 6.0).key("y"), request("a", second, 6.0).key("x")],
    );
    s.take_all(
        TODAY,
        &[request("a", second, 6.0), request("a", second, 4.0).key("y"), request("a", second, 4.0).key("x")],
    );
    out.push(s.finish());
    let mut s = Story::new("reservations: granted for the latest retryAt");
    let slow = Limit::bucket(1.0, 1000.0);
    s.take_all(TODAY, &[request("a", second, 12.0).reserve(), request("b", slow, 3.0).reserve()]);
    s.take_all(TODAY, &[request("a", second, 1.0).reserve(), request("b", slow, 1.0)]);
    s.take_all(TODAY, &[request("a", second, 1.0).reserve(), request("c", slow, 1.0)]);
    out.push(s.finish());
    let mut s = Story::new("a reservation bound is met by the sum");
    let bounded = second.max_reserved(5.0);
    s.take_all(TODAY, &[request("a", bounded, 9.0).reserve(), request("a", bounded, 6.0).reserve()]);
    s.take_all(TODAY, &[request("a", bounded, 0.5).reserve()]);
    s.take_all(TODAY, &[request("b", bounded, 9.0).reserve(), request("b", bounded, 7.0).reserve()]);
    out.push(s.finish());
    let mut s = Story::new("count 0 writes nothing");
    s.take_all(TODAY, &[request("a", second, 0.0), request("b", minute, 1.0)]);
    s.take_all(TODAY, &[request("a", second, 0.0), request("a", second, 0.0)]);
    out.push(s.finish());
    let mut s = Story::new("a single request");
    s.take_all(TODAY, &[request("a", second, 10.0)]);
    s.take_all(TODAY, &[request("a", second, 1.0)]);
    out.push(s.finish());
    let mut s = Story::new("no request at all is granted");
    s.take_all(TODAY, &[]);
    out.push(s.finish());
    for seed in 0..16 {
        let mut random = Random(seed);
        let mut s = Story::new(&format!("at random, {seed}"));
        let limits = [
            ("a", second),
            ("b", Limit::bucket(3.3, 700.0).capacity(5.0).max_reserved(2.0)),
            ("c", Limit::window(7.0, 500.0)),
            ("d", Limit::window(20.0, 2000.0).capacity(25.0).start(9.0)),
        ];
        let mut now = TODAY;
        for _ in 0..8 {
            let requests: Vec<Request> = (0..=random.below(3))
                .map(|_| {
                    let (name, limit) = random.of(&limits);
                    let request = request(name, limit, random.of(&[0.5, 1.0, 2.0, 4.7]));
                    let request = if random.below(3) == 0 { request.reserve() } else { request };
                    if random.below(3) == 0 { request.key("user:1") } else { request }
                })
                .collect();
            s.take_all(now, &requests);
            now += random.of(&[0.0, 1.0, 120.0, 800.0]);
        }
        out.push(s.finish());
    }
    out
}
