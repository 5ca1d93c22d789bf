//! Every sequence of up to six operations, on every policy of a small grid: tens of millions of histories. The numbers
//! are chosen so that every value is exact in halves and quarters of a token. So a model in integers is exact, and the
//! core must equal it to the bit. Laws 1, 2, 3 and 6 are checked at each step.

mod integer_model;

use integer_model::{Answer, Limit, Numbers};
use tidegate_core::{Bucket, Config, FIRST_REQUEST, Kind, Outcome, Policy, State};

const NOW: i64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Op {
    Take(i64),
    Reserve(i64),
    Check(i64),
    Give(i64),
    Charge(i64),
    Block(i64),
}

/// The possible next steps: ms that pass (negative where the clock steps back), and the operation.
const NEXT: [(i64, Op); 9] = [
    (0, Op::Take(1)),
    (5, Op::Take(1)),
    (-3, Op::Take(1)),
    (0, Op::Reserve(1)),
    (2, Op::Reserve(3)),
    (0, Op::Check(1)),
    (1, Op::Give(1)),
    (0, Op::Charge(2)),
    (1, Op::Block(3)),
];
const DEPTH: usize = 6;

struct Grant {
    at: i64,
    count: i64,
    reserved: bool,
}

struct Walk {
    limit: Limit,
    bucket: Bucket,
    grants: Vec<Grant>,
    steps: u64,
}

fn bits(state: Option<State>) -> Option<(u64, u64)> {
    state.map(|s| (s.value().to_bits(), s.ts().to_bits()))
}

impl Walk {
    fn state(&self, numbers: Numbers) -> State {
        State::new(self.limit.tokens(numbers.value), numbers.ts as f64).unwrap()
    }

    fn carry_out(&self, op: Op, state: Option<State>, now: i64) -> (Outcome, Answer, bool) {
        let at = now as f64;
        let known = state.map(|s| Numbers { value: self.limit.scaled(s.value()), ts: s.ts() as i64 });
        match op {
            Op::Take(n) => (self.bucket.take(state, at, n as f64, false), self.limit.take(known, now, n, false), true),
            Op::Reserve(n) => (self.bucket.take(state, at, n as f64, true), self.limit.take(known, now, n, true), true),
            Op::Check(n) => {
                let decision = self.bucket.check(state, at, n as f64, false);
                let answer = self.limit.take(known, now, n, false);
                (Outcome { decision, write: None }, Answer { write: None, ..answer }, false)
            }
            Op::Give(n) => (self.bucket.give(state, at, n as f64), self.limit.give(known, now, n), false),
            Op::Charge(n) => (self.bucket.charge(state, at, n as f64), self.limit.charge(known, now, n), false),
            Op::Block(ms) => (self.bucket.block(state, at, ms as f64), self.limit.block(known, now, ms), false),
        }
    }

    /// The core's decision equals the model's to the bit.
    fn agrees(&self, outcome: &Outcome, answer: &Answer, context: &dyn Fn() -> String) {
        let (d, limit) = (&outcome.decision, &self.limit);
        assert_eq!(d.ok, answer.ok, "ok: {}", context());
        assert_eq!(d.retry_at, answer.retry_at.map(|at| at as f64), "retry_at: {}", context());
        assert_eq!(bits(outcome.write), bits(answer.write.map(|w| self.state(w))), "write: {}", context());
        if !answer.never {
            assert_eq!(d.value.to_bits(), limit.tokens(answer.numbers.value).to_bits(), "value: {}", context());
            assert_eq!(d.ts, answer.numbers.ts as f64, "ts: {}", context());
        }
    }

    /// Law 2: granted at `retry_at`, denied a millisecond before. Law 3: a denial leaves nothing to write.
    fn retries(&self, op: Op, state: Option<State>, now: i64, outcome: &Outcome, context: &dyn Fn() -> String) {
        let (Op::Take(count) | Op::Check(count) | Op::Reserve(count)) = op else { return };
        if outcome.decision.ok {
            return;
        }
        assert!(outcome.write.is_none(), "a denial writes: {}", context());
        let Some(at) = outcome.decision.retry_at else { return };
        let again = |at: f64| self.bucket.take(state, at, count as f64, matches!(op, Op::Reserve(_))).decision.ok;
        assert!(at > now as f64 && again(at) && !again(at - 1.0), "retry at {at}: {}", context());
    }

    /// Law 6, per step: with a clock behind the state, the decision is the one at the state's `ts`.
    fn ignores_a_clock_behind(&self, op: Op, state: Option<State>, now: i64, outcome: &Outcome) {
        let Some(s) = state.filter(|s| s.ts() > now as f64) else { return };
        let (there, _, _) = self.carry_out(op, state, s.ts() as i64);
        assert_eq!((there.decision.ok, bits(there.write)), (outcome.decision.ok, bits(outcome.write)));
    }

    /// Law 1, over every span that ends here. A reservation counts when it is paid for; one of more than the capacity
    /// raises the bound to its own count, plus one ms or window of refill.
    fn bounded(&self, context: &dyn Fn() -> String) {
        for from in &self.grants {
            let mut inside: Vec<&Grant> = self.grants.iter().filter(|g| g.at >= from.at).collect();
            inside.sort_by_key(|g| g.at);
            let (mut sum, mut most) = (0, self.limit.capacity);
            for grant in inside {
                sum += grant.count * self.limit.period;
                if grant.reserved {
                    most = most.max(grant.count * self.limit.period + self.limit.last_bit());
                }
                assert!(sum <= most + self.limit.earned_at_most(from.at, grant.at), "bound: {}", context());
            }
        }
    }

    fn go(&mut self, path: &mut Vec<usize>, state: Option<State>, now: i64, bounded: bool) {
        if path.len() == DEPTH {
            return;
        }
        for (i, (ms, op)) in NEXT.into_iter().enumerate() {
            path.push(i);
            self.steps += 1;
            let now = now + ms;
            let (outcome, answer, takes) = self.carry_out(op, state, now);
            let limit = &self.limit;
            let context = || format!("{limit:?}, {:?}", path.iter().map(|i| NEXT[*i]).collect::<Vec<_>>());
            self.agrees(&outcome, &answer, &context);
            self.retries(op, state, now, &outcome, &context);
            self.ignores_a_clock_behind(op, state, now, &outcome);
            let granted = takes && outcome.decision.ok;
            // Tokens that are given back may be taken again.
            let bounded = bounded && !matches!(op, Op::Give(_));
            if granted {
                let seen = state.map_or(now, |s| now.max(s.ts() as i64));
                let (Op::Take(count) | Op::Reserve(count)) = op else { unreachable!() };
                let at = answer.retry_at.unwrap_or(seen);
                self.grants.push(Grant { at, count, reserved: outcome.decision.reserved });
                if bounded {
                    self.bounded(&|| format!("{path:?}"));
                }
            }
            self.go(path, outcome.write.or(state), now, bounded);
            if granted {
                self.grants.pop();
            }
            path.pop();
        }
    }
}

fn every_sequence(kind: Kind, start: Option<i64>, periods: &[i64]) {
    let mut steps = 0;
    for &period in periods {
        for rate in [1, 3] {
            for capacity in [0, 1, 4] {
                for max_reserved in [None, Some(0), Some(3)] {
                    let config = Config {
                        rate: rate as f64,
                        period: period as f64,
                        capacity: Some(capacity as f64),
                        max_reserved: max_reserved.map(|n: i64| n as f64),
                        ..Config::new(kind)
                    };
                    let bucket =
                        Policy::new(&config).unwrap().bucket(start.map_or(FIRST_REQUEST, |start| start as f64));
                    let limit = Limit {
                        window: kind == Kind::FixedWindow,
                        rate,
                        period,
                        capacity: capacity * period,
                        floor: max_reserved.map(|n| -n * period),
                        start,
                    };
                    let mut walk = Walk { limit, bucket, grants: Vec::new(), steps: 0 };
                    walk.go(&mut Vec::new(), None, NOW, true);
                    steps += walk.steps;
                }
            }
        }
    }
    assert!(steps > 10_000_000, "{steps} steps");
}

#[test]
fn every_sequence_on_token_buckets_equals_the_integer_model() {
    every_sequence(Kind::TokenBucket, Some(1), &[2, 4]);
}

#[test]
fn every_sequence_on_fixed_windows_equals_the_integer_model() {
    every_sequence(Kind::FixedWindow, Some(1), &[2, 4]);
}

#[test]
fn every_sequence_on_first_request_windows_equals_the_integer_model() {
    every_sequence(Kind::FixedWindow, None, &[2, 4]);
}
