//! The algebra in integers: a value is tokens times `period`, so each ms adds `rate`. Written from the rules, with
//! closed forms where the core searches.

/// A policy; `capacity` and `floor` are scaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) window: bool,
    pub(crate) rate: i64,
    pub(crate) period: i64,
    pub(crate) capacity: i64,
    pub(crate) floor: Option<i64>,
    /// Offset of the window grid; `None`: windows begin at the first request.
    pub(crate) start: Option<i64>,
}

/// A state; `value` is scaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) value: i64,
    pub(crate) ts: i64,
}

pub(crate) struct Answer {
    pub(crate) ok: bool,
    /// Denied before any state was read.
    pub(crate) never: bool,
    pub(crate) numbers: Numbers,
    pub(crate) retry_at: Option<i64>,
    pub(crate) write: Option<Numbers>,
}

/// The quotient, rounded up; `by` is above 0.
fn divided_up(a: i64, by: i64) -> i64 {
    -(-a).div_euclid(by)
}

impl Limit {
    pub(crate) fn tokens(&self, scaled: i64) -> f64 {
        scaled as f64 / self.period as f64
    }

    pub(crate) fn scaled(&self, tokens: f64) -> i64 {
        let scaled = tokens * self.period as f64;
        assert_eq!(scaled.fract(), 0.0, "{tokens} tokens are not whole when scaled");
        scaled as i64
    }

    /// Index of the window that contains `t`, on the grid of a state with this `ts`.
    fn index(&self, ts: i64, t: i64) -> i64 {
        (t - self.start.unwrap_or(ts)).div_euclid(self.period)
    }

    fn begun(&self, ts: i64, t: i64) -> i64 {
        if self.window { self.start.unwrap_or(ts) + self.index(ts, t) * self.period } else { t }
    }

    /// Scaled tokens that are refilled from one instant to another.
    fn earned(&self, from: i64, to: i64) -> i64 {
        if self.window {
            (self.index(from, to) - self.index(from, from)) * self.last_bit()
        } else {
            (to - from) * self.rate
        }
    }

    /// The most that is refilled in a span: windows that begin at a request may begin at any of its instants.
    pub(crate) fn earned_at_most(&self, from: i64, to: i64) -> i64 {
        let opens = self.window && self.start.is_none();
        if opens { divided_up(to - from, self.period) * self.last_bit() } else { self.earned(from, to) }
    }

    /// The refill of one ms, or of one window.
    pub(crate) fn last_bit(&self) -> i64 {
        if self.window { self.rate * self.period } else { self.rate }
    }

    fn refill(&self, state: Option<Numbers>, now: i64) -> Numbers {
        let Some(s) = state else { return Numbers { value: self.capacity, ts: self.begun(now, now) } };
        let earned = self.earned(s.ts, now);
        if self.window && self.start.is_none() && now > s.ts && s.value + earned >= self.capacity {
            return Numbers { value: self.capacity, ts: now };
        }
        if earned <= 0 {
            return Numbers { value: s.value.min(self.capacity), ts: s.ts };
        }
        Numbers { value: (s.value + earned).min(self.capacity), ts: self.begun(s.ts, now) }
    }

    /// The first instant from `now` on at which the value is at least `target`, which is at most the capacity.
    fn reaches(&self, s: Numbers, now: i64, target: i64) -> i64 {
        let steps = divided_up((target - s.value).max(0), self.last_bit());
        let at = if self.window { self.begun(s.ts, s.ts) + steps * self.period } else { s.ts + steps };
        at.max(now)
    }

    pub(crate) fn take(&self, state: Option<Numbers>, now: i64, count: i64, reserve: bool) -> Answer {
        let count = count * self.period;
        let floor = if reserve { self.floor } else { Some(0) };
        if floor.is_some_and(|floor| self.capacity - count < floor) {
            return Answer {
                ok: false,
                never: true,
                numbers: Numbers { value: 0, ts: 0 },
                retry_at: None,
                write: None,
            };
        }
        let refilled = self.refill(state, now);
        let after = Numbers { value: refilled.value - count, ts: refilled.ts };
        if let Some(floor) = floor.filter(|floor| after.value < *floor) {
            let at = self.reaches(state.expect("a fresh state is full"), now, count + floor);
            return Answer { ok: false, never: false, numbers: refilled, retry_at: Some(at), write: None };
        }
        self.settled(after, now)
    }

    pub(crate) fn charge(&self, state: Option<Numbers>, now: i64, count: i64) -> Answer {
        let refilled = self.refill(state, now);
        self.settled(Numbers { value: refilled.value - count * self.period, ts: refilled.ts }, now)
    }

    pub(crate) fn give(&self, state: Option<Numbers>, now: i64, count: i64) -> Answer {
        let refilled = self.refill(state, now);
        let value = (refilled.value + count * self.period).min(self.capacity);
        let answer = self.settled(Numbers { value, ts: refilled.ts }, now);
        // Without a state the key is full already.
        Answer { write: answer.write.filter(|_| state.is_some()), ..answer }
    }

    /// The end is the first instant from `until` on at which a window begins; a bucket's tokens come with every ms.
    pub(crate) fn block(&self, state: Option<Numbers>, now: i64, ms: i64) -> Answer {
        let held = self.refill(state, now);
        let until = held.ts.max(now) + ms;
        let one = self.period.min(self.capacity);
        let mut after = held;
        let denied_anyway = self.refill(Some(held), until - 1).value < one;
        if !denied_anyway {
            let opens = self.window && self.start.is_none();
            let most = if self.window { self.last_bit().min(self.capacity).max(one) } else { one };
            let target = if opens { most.min(self.refill(Some(held), until).value) } else { most };
            if opens {
                after.ts = until - divided_up(ms, self.period) * self.period;
            }
            let end = if self.window && !opens { self.begun(0, until - 1) + self.period } else { until };
            after.value = target - self.earned(after.ts, end);
        }
        let retry_at = Some(self.reaches(after, now, one));
        Answer { ok: true, never: false, numbers: after, retry_at, write: (!denied_anyway).then_some(after) }
    }

    fn settled(&self, after: Numbers, now: i64) -> Answer {
        let retry_at = (after.value < 0).then(|| self.reaches(after, now, 0));
        Answer { ok: true, never: false, numbers: after, retry_at, write: Some(after) }
    }
}
