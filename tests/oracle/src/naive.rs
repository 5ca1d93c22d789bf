//! The rules in doubles, in their stated order, with plain bisection for every search.

use crate::limit::{Kind, Limit};

/// 2^52 ms.
pub const CLOCK_END: f64 = 4_503_599_627_370_496.0;
/// One hour, in ms.
pub const MAX_SKEW_MS: f64 = 3_600_000.0;

/// A state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Tokens at `ts`.
    pub value: f64,
    /// ms.
    pub ts: f64,
}

/// The decision on a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Granted.
    pub ok: bool,
    /// Tokens.
    pub value: f64,
    /// ms.
    pub ts: f64,
    /// ms.
    pub retry_at: Option<f64>,
    /// ms.
    pub reset_at: f64,
    /// Granted as a reservation.
    pub reserved: bool,
    /// Why a denial has no `retry_at`.
    pub reason: Option<&'static str>,
}

pub(crate) fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

fn index(limit: &Limit, t: f64) -> f64 {
    ((t - limit.start.unwrap_or(0.0)) / limit.period).floor()
}

fn window(limit: &Limit, number: f64) -> f64 {
    limit.start.unwrap_or(0.0) + number * limit.period
}

/// The state; `None` where it came from a broken clock.
#[must_use]
pub fn known(state: Option<State>, now: f64) -> Option<State> {
    state.filter(|s| s.ts - now <= MAX_SKEW_MS)
}

/// The state at `now`.
#[must_use]
pub fn refill(limit: &Limit, state: Option<State>, now: f64) -> State {
    let capacity = limit.most();
    match (limit.kind, known(state, now)) {
        (Kind::FixedWindow, Some(s)) if limit.opens() => opened(limit, s, now),
        (Kind::FixedWindow, None) if limit.opens() => State { value: capacity, ts: now },
        (Kind::TokenBucket, None) => State { value: capacity, ts: now },
        (Kind::FixedWindow, None) => State { value: capacity, ts: window(limit, index(limit, now)) },
        (Kind::TokenBucket, Some(s)) if now <= s.ts => State { value: min(s.value, capacity), ts: s.ts },
        (Kind::TokenBucket, Some(s)) => {
            State { value: min(s.value + ((now - s.ts) * limit.rate) / limit.period, capacity), ts: now }
        }
        (Kind::FixedWindow, Some(s)) => {
            let (current, stored) = (index(limit, now), index(limit, s.ts));
            if current <= stored {
                return State { value: min(s.value, capacity), ts: s.ts };
            }
            let value = min(s.value + limit.rate * (current - stored), capacity);
            State { value, ts: window(limit, current) }
        }
    }
}

/// Refill on windows that begin at the first request. Once the key is full, the next request opens a new window.
fn opened(limit: &Limit, s: State, now: f64) -> State {
    let capacity = limit.most();
    if now <= s.ts {
        return State { value: min(s.value, capacity), ts: s.ts };
    }
    let ended = ((now - s.ts) / limit.period).floor();
    let value = min(if ended > 0.0 { s.value + limit.rate * ended } else { s.value }, capacity);
    State { value, ts: if value >= capacity { now } else { s.ts + ended * limit.period } }
}

/// The first integer ms from `from` to 2^52 at which `holds` is true, by plain bisection.
pub fn first_ms(from: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    if from > CLOCK_END || !holds(CLOCK_END) {
        return None;
    }
    let (mut low, mut high) = (from.ceil() as u64, CLOCK_END as u64);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle as f64) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high as f64)
}

/// The first integer ms from which the state is equivalent to no state.
#[must_use]
pub fn full_at(limit: &Limit, state: Option<State>, now: f64) -> f64 {
    let Some(s) = known(state, now) else { return now };
    let from = if s.ts > now { s.ts } else { now };
    first_ms(from, |t| refill(limit, Some(s), t).value >= limit.most()).unwrap_or(CLOCK_END)
}

/// The decision on a request that can never be granted.
#[must_use]
pub fn never(now: f64) -> Decision {
    let reason = Some("exceeds capacity");
    Decision { ok: false, value: 0.0, ts: now, retry_at: None, reset_at: now, reserved: false, reason }
}

/// Takes `count` tokens, or denies; returns the decision and the state to store.
#[must_use]
pub fn take(limit: &Limit, state: Option<State>, now: f64, count: f64, reserve: bool) -> (Decision, Option<State>) {
    let floor = limit.floor(reserve);
    if limit.most() - count < floor {
        return (never(now), None);
    }
    let r = refill(limit, state, now);
    let v = r.value - count;
    if v >= floor {
        let after = State { value: v, ts: r.ts };
        let paid_at = if v >= 0.0 { None } else { first_ms(now, |t| refill(limit, Some(after), t).value >= 0.0) };
        if v >= 0.0 || paid_at.is_some() {
            return settled(limit, state, after, now, count, paid_at, v < 0.0);
        }
    }
    let retry_at = if v >= floor { None } else { first_ms(now, |t| refill(limit, state, t).value - count >= floor) };
    let reason = if retry_at.is_none() { Some("exceeds clock") } else { None };
    let reset_at = full_at(limit, state, now);
    (Decision { ok: false, value: r.value, ts: r.ts, retry_at, reset_at, reserved: false, reason }, None)
}

fn settled(
    limit: &Limit,
    before: Option<State>,
    after: State,
    now: f64,
    count: f64,
    retry_at: Option<f64>,
    reserved: bool,
) -> (Decision, Option<State>) {
    let write = if count > 0.0 { Some(after) } else { None };
    let reset_at = full_at(limit, write.or(before), now);
    (Decision { ok: true, value: after.value, ts: after.ts, retry_at, reset_at, reserved, reason: None }, write)
}

fn paid_at(limit: &Limit, after: State, now: f64) -> Option<f64> {
    if after.value >= 0.0 { None } else { first_ms(now, |t| refill(limit, Some(after), t).value >= 0.0) }
}

/// Gives unused tokens back. Without a usable state nothing is written: the key is full already.
#[must_use]
pub fn give(limit: &Limit, state: Option<State>, now: f64, count: f64) -> (Decision, Option<State>) {
    let r = refill(limit, state, now);
    let after = State { value: min(r.value + count, limit.most()), ts: r.ts };
    let written = if known(state, now).is_some() { count } else { 0.0 };
    settled(limit, state, after, now, written, paid_at(limit, after, now), false)
}

/// Takes tokens that are already spent.
#[must_use]
pub fn charge(limit: &Limit, state: Option<State>, now: f64, count: f64) -> (Decision, Option<State>) {
    let r = refill(limit, state, now);
    let after = State { value: r.value - count, ts: r.ts };
    settled(limit, state, after, now, count, paid_at(limit, after, now), false)
}

/// Blocks the key for `ms`: the value that reaches one token (a window: its rate) at the end, unless one token is denied
/// until then anyway.
#[must_use]
pub fn block(limit: &Limit, state: Option<State>, now: f64, ms: f64) -> (Decision, Option<State>) {
    let r = refill(limit, state, now);
    let until = (if r.ts > now { r.ts } else { now }) + ms;
    let one = min(limit.one, limit.most());
    let stored = known(state, now).unwrap_or(r);
    let denied_anyway = refill(limit, Some(stored), until - 1.0).value < one;
    let after = if denied_anyway { r } else { blocked(limit, r, until, ms, one) };
    let kept = if denied_anyway { stored } else { after };
    let retry_at = first_ms(now, |t| refill(limit, Some(kept), t).value >= one);
    settled(limit, known(state, now), after, now, if denied_anyway { 0.0 } else { 1.0 }, retry_at, false)
}

fn blocked(limit: &Limit, r: State, until: f64, ms: f64, one: f64) -> State {
    let added = min(limit.rate, limit.most());
    let whole_window = if added > one { added } else { one };
    let (ts, target, gained, gained_before) = match limit.kind {
        Kind::TokenBucket => {
            let gained = |t: f64| ((t - r.ts) * limit.rate) / limit.period;
            (r.ts, one, gained(until), gained(until - 1.0))
        }
        Kind::FixedWindow if limit.opens() => {
            let windows = (ms / limit.period).ceil();
            let unblocked = refill(limit, Some(r), until).value;
            let target = min(whole_window, unblocked);
            (until - windows * limit.period, target, limit.rate * windows, limit.rate * (windows - 1.0))
        }
        Kind::FixedWindow => {
            let windows = index(limit, until - 1.0) + 1.0 - index(limit, r.ts);
            (r.ts, whole_window, limit.rate * windows, limit.rate * (windows - 1.0))
        }
    };
    let correction = (gained + target) * 2f64.powi(-51);
    let mut value = target - gained;
    if value + gained < one {
        value += correction;
    }
    if value + gained_before >= one {
        value -= correction;
    }
    State { value, ts }
}
