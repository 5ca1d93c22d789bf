//! Shards in doubles, as one pool: it holds the capacity less the tokens that each shard lacks, summed in the order of
//! the shards. The pool spreads its tokens evenly after each call.

use crate::limit::Limit;
use crate::naive::{Decision, State, block, first_ms, full_at, known, min, never, refill};

/// The shards of one limit at one instant. `states` has the stored states after each call.
#[derive(Debug)]
pub struct Shards<'a> {
    /// The whole limit.
    pub whole: Limit,
    /// The stored states, one element per shard.
    pub states: &'a mut [Option<State>],
    /// ms.
    pub now: f64,
}

fn latest(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

impl Shards<'_> {
    fn missing(&self, states: &[Option<State>], t: f64) -> f64 {
        let part = self.whole.part();
        let mut sum = 0.0;
        for state in states {
            sum += match known(*state, self.now) {
                None => 0.0,
                some => part.most() - refill(&part, some, t).value,
            };
        }
        sum
    }

    fn evenly(&self, missing: f64) -> Vec<Option<State>> {
        let part = self.whole.part();
        let value = part.most() - missing / self.states.len() as f64;
        let ts = |state: &Option<State>| refill(&part, *state, self.now).ts;
        self.states.iter().map(|state| Some(State { value, ts: ts(state) })).collect()
    }

    fn paid_at(&self, states: &[Option<State>], count: f64, floor: f64) -> Option<f64> {
        self.paid_after(self.now, states, count, floor)
    }

    fn paid_after(&self, from: f64, states: &[Option<State>], count: f64, floor: f64) -> Option<f64> {
        first_ms(from, |t| (self.whole.most() - self.missing(states, t)) - count >= floor)
    }

    /// All shards' tokens, as one state.
    #[must_use]
    pub fn sum(&self, states: &[Option<State>]) -> State {
        let part = self.whole.part();
        let ts = states.iter().map(|s| refill(&part, *s, self.now).ts).fold(f64::NEG_INFINITY, latest);
        State { value: self.whole.most() - self.missing(states, self.now), ts }
    }

    fn decision(&self, states: &[Option<State>], ok: bool, retry_at: Option<f64>) -> Decision {
        let State { value, ts } = self.sum(states);
        let part = self.whole.part();
        let reset_at = states.iter().map(|s| full_at(&part, *s, self.now)).fold(self.now, latest);
        let reason = if ok || retry_at.is_some() { None } else { Some("exceeds clock") };
        Decision { ok, value, ts, retry_at, reset_at, reserved: ok && retry_at.is_some(), reason }
    }

    /// Takes `count` tokens from the pool, or denies.
    pub fn take(&mut self, count: f64, reserve: bool) -> Decision {
        let floor = self.whole.floor(reserve);
        if self.whole.most() - count < floor {
            return never(self.now);
        }
        let v = self.sum(self.states).value - count;
        if v < floor {
            return self.decision(self.states, false, self.paid_at(self.states, count, floor));
        }
        let after =
            if count > 0.0 { self.evenly(self.missing(self.states, self.now) + count) } else { self.states.to_vec() };
        // After `now`: spreading may round away a debt of less than one ulp, and it is still a reservation.
        let paid_at = if v >= 0.0 { None } else { self.paid_after(self.now + 1.0, &after, 0.0, 0.0) };
        if v < 0.0 && paid_at.is_none() {
            return self.decision(self.states, false, None);
        }
        let decision = self.decision(&after, true, paid_at);
        self.states.copy_from_slice(&after);
        decision
    }

    /// Gives unused tokens back, spread evenly.
    pub fn give(&mut self, count: f64) -> Decision {
        let missing = self.missing(self.states, self.now) - count;
        if count > 0.0 && self.states.iter().any(|s| known(*s, self.now).is_some()) {
            let after = self.evenly(if missing > 0.0 { missing } else { 0.0 });
            self.states.copy_from_slice(&after);
        }
        self.settled()
    }

    /// Takes tokens that are already spent, spread evenly.
    pub fn charge(&mut self, count: f64) -> Decision {
        if count > 0.0 {
            let after = self.evenly(self.missing(self.states, self.now) + count);
            self.states.copy_from_slice(&after);
        }
        self.settled()
    }

    /// Blocks every shard.
    pub fn block(&mut self, ms: f64) -> Decision {
        let part = self.whole.part();
        let after: Vec<_> = self.states.iter().map(|s| block(&part, *s, self.now, ms).1.or(*s)).collect();
        self.states.copy_from_slice(&after);
        let one = min(self.whole.one, self.whole.most());
        let retry_at = self.paid_after(self.now + 1.0, &after, one, 0.0);
        Decision { reserved: false, ..self.decision(&after, true, retry_at) }
    }

    fn settled(&self) -> Decision {
        let retry_at = if self.sum(self.states).value >= 0.0 { None } else { self.paid_at(self.states, 0.0, 0.0) };
        Decision { reserved: false, ..self.decision(self.states, true, retry_at) }
    }
}
