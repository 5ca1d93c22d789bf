//! The rules in rational numbers, without rounding; every instant is computed in closed form.

use crate::limit::{Kind, Limit};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

const CLOCK_END: i128 = 1 << 52;
pub(crate) const MAX_SKEW_MS: i128 = 3_600_000;

/// The exact rational value of a double.
///
/// # Panics
/// On NaN and infinities.
#[must_use]
pub fn rational(x: f64) -> BigRational {
    BigRational::from_float(x).expect("a finite number")
}

fn whole(x: i128) -> BigRational {
    BigRational::from_integer(BigInt::from(x))
}

fn ceil(x: &BigRational) -> Option<i128> {
    x.ceil().to_integer().to_i128()
}

/// A state.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Tokens at `ts`.
    pub value: BigRational,
    /// ms.
    pub ts: i128,
}

impl State {
    /// From doubles; `ts` must be an integer.
    #[must_use]
    pub fn of(value: f64, ts: f64) -> State {
        State { value: rational(value), ts: ts as i128 }
    }
}

/// A limit with a resolved window grid.
#[derive(Clone, Debug)]
pub struct Exact {
    pub(crate) kind: Kind,
    pub(crate) rate: BigRational,
    pub(crate) period: i128,
    pub(crate) capacity: BigRational,
    pub(crate) max_reserved: Option<BigRational>,
    /// Offset of the window grid; `None`: each key's window begins at its first request.
    pub(crate) start: Option<i128>,
}

/// The decision on a call, and the state to store.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Granted.
    pub ok: bool,
    /// Tokens.
    pub value: BigRational,
    /// ms.
    pub ts: i128,
    /// ms.
    pub retry_at: Option<i128>,
    /// ms.
    pub reset_at: i128,
    /// Granted as a reservation.
    pub reserved: bool,
    /// The new state.
    pub write: Option<State>,
}

impl Exact {
    /// The limit in rationals; `shards` is ignored.
    #[must_use]
    pub fn new(limit: &Limit) -> Exact {
        Exact {
            kind: limit.kind,
            rate: rational(limit.rate),
            period: limit.period as i128,
            capacity: rational(limit.most()),
            max_reserved: limit.max_reserved.map(rational),
            start: (!limit.opens()).then(|| limit.start.unwrap_or(0.0) as i128),
        }
    }

    /// One of `n` equal parts.
    #[must_use]
    pub fn part(&self, n: usize) -> Exact {
        let n = whole(n as i128);
        Exact {
            rate: &self.rate / &n,
            capacity: &self.capacity / &n,
            max_reserved: self.max_reserved.as_ref().map(|tokens| tokens / &n),
            ..self.clone()
        }
    }

    /// Number of windows that end after one instant and not after another.
    fn windows(&self, from: i128, to: i128) -> i128 {
        let grid = self.start.unwrap_or(from);
        Integer::div_floor(&(to - grid), &self.period) - Integer::div_floor(&(from - grid), &self.period)
    }

    /// Start of the window of an instant, on the grid of another instant.
    fn window(&self, of: i128, t: i128) -> i128 {
        let grid = self.start.unwrap_or(of);
        grid + Integer::div_floor(&(t - grid), &self.period) * self.period
    }

    fn known(state: Option<&State>, now: i128) -> Option<&State> {
        state.filter(|s| s.ts - now <= MAX_SKEW_MS)
    }

    /// Tokens that are refilled between two instants, uncapped.
    #[must_use]
    pub fn earned(&self, from: i128, to: i128) -> BigRational {
        match self.kind {
            Kind::TokenBucket => whole((to - from).max(0)) * &self.rate / whole(self.period),
            Kind::FixedWindow => whole(self.windows(from, to).max(0)) * &self.rate,
        }
    }

    /// The most tokens that are refilled between two instants: windows that begin at a request may begin at any of
    /// them.
    #[must_use]
    pub fn earned_at_most(&self, from: i128, to: i128) -> BigRational {
        let opens = self.kind == Kind::FixedWindow && self.start.is_none();
        if opens {
            whole(Integer::div_ceil(&(to - from).max(0), &self.period)) * &self.rate
        } else {
            self.earned(from, to)
        }
    }

    /// The state at `now`.
    #[must_use]
    pub fn refill(&self, state: Option<&State>, now: i128) -> State {
        let begun = |of: i128| match self.kind {
            Kind::TokenBucket => now,
            Kind::FixedWindow => self.window(of, now),
        };
        let Some(s) = Self::known(state, now) else { return State { value: self.capacity.clone(), ts: begun(now) } };
        let ahead = match self.kind {
            Kind::TokenBucket => now <= s.ts,
            Kind::FixedWindow => self.windows(s.ts, now) <= 0,
        };
        let value = (&s.value + self.earned(s.ts, now)).min(self.capacity.clone());
        let opens = self.kind == Kind::FixedWindow && self.start.is_none() && value >= self.capacity;
        let ts = if opens && now > s.ts {
            now
        } else if ahead {
            s.ts
        } else {
            begun(s.ts)
        };
        State { value, ts }
    }

    /// Whether the state holds `tokens` at `now`; if not, the first integer ms at which it does.
    #[must_use]
    pub fn least(&self, s: &State, now: i128, tokens: &BigRational) -> Option<i128> {
        if self.refill(Some(s), now).value >= *tokens {
            return Some(now);
        }
        let lacking = tokens - &s.value;
        let t = match self.kind {
            Kind::TokenBucket => s.ts + ceil(&(lacking * whole(self.period) / &self.rate))?,
            Kind::FixedWindow => self.window(s.ts, s.ts) + ceil(&(lacking / &self.rate))? * self.period,
        };
        (t <= CLOCK_END).then_some(t)
    }

    /// The first integer ms from which the state is equivalent to no state.
    #[must_use]
    pub fn full_at(&self, state: Option<&State>, now: i128) -> i128 {
        let Some(s) = Self::known(state, now) else { return now };
        self.least(s, s.ts.max(now), &self.capacity).unwrap_or(CLOCK_END).min(CLOCK_END)
    }

    pub(crate) fn never(now: i128) -> Answer {
        let value = BigRational::zero();
        Answer { ok: false, value, ts: now, retry_at: None, reset_at: now, reserved: false, write: None }
    }

    /// The least value that a request may leave; `None` where there is no bound.
    pub(crate) fn floor(&self, reserve: bool) -> Option<BigRational> {
        if reserve { self.max_reserved.as_ref().map(|tokens| -tokens) } else { Some(BigRational::zero()) }
    }

    /// Takes `count` tokens, or denies.
    #[must_use]
    pub fn take(&self, state: Option<&State>, now: i128, count: &BigRational, reserve: bool) -> Answer {
        let floor = self.floor(reserve);
        if floor.as_ref().is_some_and(|floor| &self.capacity - count < *floor) {
            return Self::never(now);
        }
        let r = self.refill(state, now);
        let v = &r.value - count;
        let denied = |retry_at: Option<i128>| Answer {
            ok: false,
            value: r.value.clone(),
            ts: r.ts,
            retry_at,
            reset_at: self.full_at(state, now),
            reserved: false,
            write: None,
        };
        if let Some(floor) = floor.filter(|floor| v < *floor) {
            return denied(Self::known(state, now).and_then(|s| self.least(s, now, &(count + floor))));
        }
        let answer = self.settled(state, State { value: v.clone(), ts: r.ts }, now, count.is_positive());
        if v.is_negative() && answer.retry_at.is_none() {
            return denied(None);
        }
        Answer { reserved: v.is_negative(), ..answer }
    }

    fn settled(&self, state: Option<&State>, after: State, now: i128, writes: bool) -> Answer {
        let retry_at = if after.value.is_negative() { self.least(&after, now, &BigRational::zero()) } else { None };
        let reset_at = self.full_at(if writes { Some(&after) } else { state }, now);
        let (value, ts) = (after.value.clone(), after.ts);
        Answer { ok: true, value, ts, retry_at, reset_at, reserved: false, write: writes.then_some(after) }
    }

    /// Gives unused tokens back.
    #[must_use]
    pub fn give(&self, state: Option<&State>, now: i128, count: &BigRational) -> Answer {
        let r = self.refill(state, now);
        let after = State { value: (&r.value + count).min(self.capacity.clone()), ts: r.ts };
        self.settled(state, after, now, count.is_positive() && Self::known(state, now).is_some())
    }

    /// Takes tokens that are already spent.
    #[must_use]
    pub fn charge(&self, state: Option<&State>, now: i128, count: &BigRational) -> Answer {
        let r = self.refill(state, now);
        self.settled(state, State { value: &r.value - count, ts: r.ts }, now, count.is_positive())
    }

    /// Blocks the key for `ms`.
    #[must_use]
    pub fn block(&self, state: Option<&State>, now: i128, ms: i128) -> Answer {
        let r = self.refill(state, now);
        let until = r.ts.max(now) + ms;
        let one = whole(1).min(self.capacity.clone());
        let window = self.rate.clone().min(self.capacity.clone()).max(one.clone());
        let (end, target) = match self.kind {
            Kind::TokenBucket => (until, one.clone()),
            Kind::FixedWindow if self.start.is_none() => (until, window.min(self.refill(Some(&r), until).value)),
            Kind::FixedWindow => (self.window(r.ts, until - 1) + self.period, window),
        };
        let mut after = r.clone();
        let denied_anyway = self.refill(Some(&r), until - 1).value < one;
        if !denied_anyway {
            if self.kind == Kind::FixedWindow && self.start.is_none() {
                after.ts = until - Integer::div_ceil(&ms, &self.period) * self.period;
            }
            after.value = target - self.earned(after.ts, end);
        }
        let retry_at = self.least(&after, now, &one);
        Answer { retry_at, ..self.settled(state, after, now, !denied_anyway) }
    }
}
