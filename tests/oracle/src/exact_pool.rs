//! Shards in rational numbers.

use crate::exact::{Answer, Exact, State};
use num_rational::BigRational;
use num_traits::{Signed, Zero};

const CLOCK_END: i128 = 1 << 52;

/// The shards of one limit at one instant.
#[derive(Debug)]
pub struct ExactShards<'a> {
    /// The whole limit.
    pub whole: Exact,
    /// What is stored.
    pub states: &'a mut [Option<State>],
    /// ms.
    pub now: i128,
}

impl ExactShards<'_> {
    fn part(&self) -> Exact {
        self.whole.part(self.states.len())
    }

    fn sum_of(&self, states: &[Option<State>], t: i128) -> BigRational {
        let part = self.part();
        // What is unknown now is full, and stays so until it is written.
        let known = |s: &Option<State>| s.clone().filter(|s| s.ts - self.now <= 3_600_000);
        states.iter().map(|s| part.refill(known(s).as_ref(), t).value).sum()
    }

    /// All shards' tokens.
    #[must_use]
    pub fn sum(&self) -> State {
        let part = self.part();
        let ts = self.states.iter().map(|s| part.refill(s.as_ref(), self.now).ts).max().unwrap_or(self.now);
        State { value: self.sum_of(self.states, self.now), ts }
    }

    fn first(&self, states: &[Option<State>], tokens: &BigRational) -> Option<i128> {
        let holds = |t: i128| self.sum_of(states, t) >= *tokens;
        if !holds(CLOCK_END) {
            return None;
        }
        let (mut low, mut high) = (self.now, CLOCK_END);
        while low < high {
            let middle = (low + high) / 2;
            if holds(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(high)
    }

    fn evenly(&self, value: BigRational) -> Vec<Option<State>> {
        let (part, n) = (self.part(), BigRational::from_integer(self.states.len().into()));
        let share = value / n;
        let ts = |s: &Option<State>| part.refill(s.as_ref(), self.now).ts;
        self.states.iter().map(|s| Some(State { value: share.clone(), ts: ts(s) })).collect()
    }

    fn told(&mut self, ok: bool, retry_at: Option<i128>) -> Answer {
        let part = self.part();
        let State { value, ts } = self.sum();
        let reset_at = self.states.iter().map(|s| part.full_at(s.as_ref(), self.now)).max().unwrap_or(self.now);
        Answer { ok, value, ts, retry_at, reset_at, reserved: ok && retry_at.is_some(), write: None }
    }

    /// Takes as the doubles did: from the first of `pair`, where `from_one`, else from all.
    ///
    /// # Panics
    /// Where the doubles' choice is wrong by more than `tolerance` tokens.
    pub fn take(
        &mut self,
        pair: (usize, usize),
        from_one: bool,
        count: &BigRational,
        reserve: bool,
        tolerance: &BigRational,
    ) -> Answer {
        let part = self.part();
        let at = |i: usize| part.refill(self.states[i].as_ref(), self.now);
        let (mine, other) = (at(pair.0), at(pair.1));
        assert!(&mine.value + tolerance >= other.value, "the shard that holds less");
        let left = &mine.value - count;
        let spare = part.floor(false).map(|floor| &left - floor);
        if from_one {
            assert!(spare.is_none_or(|spare| spare >= -tolerance), "taken from a shard that denies");
            let mut answer = part.charge(self.states[pair.0].as_ref(), self.now, count);
            answer.reserved = left.is_negative();
            if left.abs() <= *tolerance {
                (answer.reserved, answer.retry_at) = (false, None);
            }
            let half = BigRational::new(self.states.len().into(), 2.into());
            answer.value = (answer.value + other.value) * half;
            answer.ts = answer.ts.max(other.ts);
            answer.reset_at = answer.reset_at.max(part.full_at(self.states[pair.1].as_ref(), self.now));
            if let Some(write) = answer.write.take() {
                self.states[pair.0] = Some(write);
            }
            return answer;
        }
        let late = part.take(self.states[pair.0].as_ref(), self.now, count, false).retry_at.is_none();
        assert!(spare.is_some_and(|spare| spare <= *tolerance) || late, "not taken from a shard that grants");
        let floor = self.whole.floor(reserve);
        if floor.as_ref().is_some_and(|floor| &self.whole.capacity - count < *floor) {
            return Exact::never(self.now);
        }
        let v = self.sum().value - count;
        if let Some(floor) = floor.filter(|floor| v < *floor) {
            let retry_at = self.first(self.states, &(count + floor));
            return self.told(false, retry_at);
        }
        let after = if count.is_positive() { self.evenly(v.clone()) } else { self.states.to_vec() };
        let paid_at = if v.is_negative() { self.first(&after, &BigRational::zero()) } else { None };
        if v.is_negative() && paid_at.is_none() {
            return self.told(false, None);
        }
        self.states.clone_from_slice(&after);
        self.told(true, paid_at)
    }

    /// Brings back, evenly.
    pub fn give(&mut self, count: &BigRational) -> Answer {
        let value = (self.sum().value + count).min(self.whole.capacity.clone());
        let any = self.states.iter().flatten().any(|s| s.ts - self.now <= 3_600_000);
        if count.is_positive() && any {
            let after = self.evenly(value);
            self.states.clone_from_slice(&after);
        }
        self.settled()
    }

    /// Takes what was already spent, evenly.
    pub fn charge(&mut self, count: &BigRational) -> Answer {
        if count.is_positive() {
            let after = self.evenly(self.sum().value - count);
            self.states.clone_from_slice(&after);
        }
        self.settled()
    }

    fn settled(&mut self) -> Answer {
        let owed = self.sum().value.is_negative();
        let retry_at = if owed { self.first(self.states, &BigRational::zero()) } else { None };
        Answer { reserved: false, ..self.told(true, retry_at) }
    }
}
