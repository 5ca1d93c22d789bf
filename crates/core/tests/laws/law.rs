//! Generators for the tests of the laws: limits, states, counts and clocks.

use proptest::prelude::*;
use tidegate_core::{Bucket, Config, Decision, FIRST_REQUEST, Kind, Outcome, Policy, State};
pub(super) use tidegate_oracle::naive::{CLOCK_END, MAX_SKEW_MS};
use tidegate_oracle::{Limit, naive};

const MOST: f64 = 1_099_511_627_776.0;

/// Spread evenly over the powers of ten.
pub(super) fn powers(from: f64, to: f64) -> impl Strategy<Value = f64> {
    (from.log10()..=to.log10()).prop_map(move |p| 10f64.powf(p).clamp(from, to))
}

fn rates() -> impl Strategy<Value = f64> {
    prop_oneof![
        powers(0.01, 1e9),
        (1u32..1000).prop_map(f64::from),
        (1u32..1000, 1u32..100).prop_map(|(a, b)| f64::from(a) / f64::from(b))
    ]
}

/// 1 ms to three years.
fn periods() -> impl Strategy<Value = f64> {
    prop_oneof![powers(1.0, 1e11).prop_map(f64::round), Just(1.0), Just(1000.0), Just(60_000.0), Just(86_400_000.0)]
}

/// Any limit of one shard, with a resolved start.
pub(super) fn limits() -> impl Strategy<Value = Limit> {
    let capacity = prop_oneof![Just(None), Just(Some(0.0)), powers(0.01, 100.0).prop_map(Some)];
    let reserved = prop_oneof![Just(None), Just(Some(0.0)), powers(0.01, 100.0).prop_map(Some)];
    (any::<bool>(), rates(), periods(), capacity, reserved, 0.0..1.0).prop_map(
        |(windows, rate, period, cap, owed, at)| Limit {
            capacity: cap.map(|times: f64| (rate * times).min(MOST)),
            max_reserved: owed.map(|times: f64| (rate * times).min(MOST)),
            start: windows.then(|| match at {
                0.0..0.3 => FIRST_REQUEST,
                _ => (f64::floor(at * 3.0 * period) - period).clamp(-CLOCK_END, CLOCK_END),
            }),
            ..if windows { Limit::window(rate, period) } else { Limit::bucket(rate, period) }
        },
    )
}

/// Any legal limit, edges of the ranges included.
pub(super) fn legal_limits() -> impl Strategy<Value = Limit> {
    let rates = prop_oneof![rates(), Just(5e-324), Just(MOST), Just(1e-300), powers(1e-12, MOST)];
    let periods = prop_oneof![periods(), Just(MOST), powers(1.0, MOST).prop_map(f64::floor)];
    let tokens = || {
        prop_oneof![
            Just(None),
            Just(Some(0.0)),
            Just(Some(MOST)),
            Just(Some(5e-324)),
            powers(1e-9, MOST).prop_map(Some)
        ]
    };
    let starts = prop_oneof![
        Just(0.0),
        Just(CLOCK_END),
        Just(-CLOCK_END),
        Just(FIRST_REQUEST),
        (-CLOCK_END..CLOCK_END).prop_map(f64::floor)
    ];
    (any::<bool>(), rates, periods, tokens(), tokens(), starts).prop_map(
        |(windows, rate, period, capacity, max_reserved, start)| {
            let limit = if windows { Limit::window(rate, period).start(start) } else { Limit::bucket(rate, period) };
            Limit { capacity, max_reserved, ..limit }
        },
    )
}

/// A fraction: of the capacity for counts, of the period for clocks.
fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(1.0 / 3.0), 0.0..1.0, 0.0..2.5, powers(1e-9, 1.0)]
}

/// One call of a history, independent of the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) op: u8,
    count: f64,
    clock: Clock,
    step: f64,
    pub(super) retries: bool,
}

#[derive(Clone, Copy, Debug)]
enum Clock {
    Stands,
    OneMs,
    Periods,
    Tokens,
    Back,
    FarBack,
    FarAhead,
}

impl Call {
    /// The count in tokens, scaled to the capacity or rate of the limit.
    pub(super) fn count(&self, limit: &Limit) -> f64 {
        (self.count * if limit.most() > 0.0 { limit.most() } else { limit.rate }).min(MOST)
    }

    /// The length of a block, ms.
    pub(super) fn ms(&self, limit: &Limit) -> f64 {
        (self.count * limit.period).ceil().clamp(1.0, MOST)
    }

    /// The next clock reading, ms. `far` allows jumps beyond [`MAX_SKEW_MS`](tidegate_core::MAX_SKEW_MS).
    pub(super) fn now(&self, limit: &Limit, before: f64, far: bool) -> f64 {
        let step = match self.clock {
            Clock::Stands => 0.0,
            Clock::OneMs => 1.0,
            Clock::Periods => self.step * limit.period,
            Clock::Tokens => self.step * limit.period * limit.most() / limit.rate,
            Clock::Back => -self.step * 10_000.0,
            Clock::FarBack if far => -MAX_SKEW_MS * self.step * 3.0,
            Clock::FarAhead if far => 1e10 * self.step,
            Clock::FarBack | Clock::FarAhead => 1.0,
        };
        (before + step.floor()).clamp(0.0, 1e15)
    }
}

pub(super) fn calls(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Call>> {
    let clock = prop_oneof![
        2 => Just(Clock::Stands), 2 => Just(Clock::OneMs), 3 => Just(Clock::Periods), 4 => Just(Clock::Tokens),
        1 => Just(Clock::Back), 1 => Just(Clock::FarBack), 1 => Just(Clock::FarAhead),
    ];
    let call = (0u8..12, shares(), clock, shares(), any::<bool>()).prop_map(|(op, count, clock, step, retries)| Call {
        op,
        count,
        clock,
        step,
        retries,
    });
    proptest::collection::vec(call, length)
}

/// Clock readings from the epoch to far ahead.
pub(super) fn instants() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1_763_640_000_000.0),
        (0.0..2e12).prop_map(f64::floor),
        (0.0..1e15).prop_map(f64::floor)
    ]
}

/// A state near the limit's numbers, and a clock near its `ts`.
pub(super) fn states(limit: Limit) -> impl Strategy<Value = (Option<State>, f64)> {
    let scale = if limit.most() > 0.0 { limit.most() } else { limit.rate };
    let value = prop_oneof![
        Just(0.0),
        Just(limit.most()),
        (-3.0..1.2).prop_map(move |x| x * scale),
        powers(1e-9, 1e3).prop_map(move |x| -x * scale)
    ];
    let ahead = prop_oneof![
        Just(0.0),
        Just(1.0),
        -5000.0..MAX_SKEW_MS,
        Just(MAX_SKEW_MS),
        Just(MAX_SKEW_MS + 1.0),
        (-3.0..1.0).prop_map(move |x| x * limit.period)
    ];
    (instants(), value, ahead, proptest::bool::weighted(0.95)).prop_map(move |(now, value, ahead, is)| {
        let ts = (now + f64::floor(ahead)).min(CLOCK_END);
        (is.then(|| State::new(value, ts).unwrap()), now)
    })
}

pub(super) fn policy(limit: &Limit) -> Policy {
    let kind = match limit.kind {
        tidegate_oracle::Kind::TokenBucket => Kind::TokenBucket,
        tidegate_oracle::Kind::FixedWindow => Kind::FixedWindow,
    };
    let Limit { rate, period, capacity, max_reserved, start, shards, .. } = *limit;
    Policy::new(&Config { kind, rate, period, capacity, max_reserved, start, shards }).unwrap()
}

pub(super) fn bucket(limit: &Limit) -> Bucket {
    policy(limit).bucket(0.0)
}

pub(super) fn naive_state(state: Option<State>) -> Option<naive::State> {
    state.map(|s| naive::State { value: s.value(), ts: s.ts() })
}

fn bits(
    ok: bool,
    reserved: bool,
    numbers: [f64; 3],
    at: Option<f64>,
    reason: Option<&str>,
    state: Option<[f64; 2]>,
) -> String {
    let hex = |x: f64| format!("{:016x} ({x})", x.to_bits());
    format!("{ok} {reserved} {:?} {:?} {reason:?} {:?}", numbers.map(hex), at.map(hex), state.map(|s| s.map(hex)))
}

pub(super) fn core_bits(o: &Outcome) -> String {
    let d = &o.decision;
    let state = o.write.map(|s| [s.value(), s.ts()]);
    bits(d.ok, d.reserved, [d.value, d.ts, d.reset_at], d.retry_at, d.reason.map(|r| r.as_str()), state)
}

/// Every bit of the decision and state of the plain doubles.
pub(super) fn naive_bits((d, write): &(naive::Decision, Option<naive::State>)) -> String {
    bits(d.ok, d.reserved, [d.value, d.ts, d.reset_at], d.retry_at, d.reason, write.map(|s| [s.value, s.ts]))
}

/// Every number of the decision is finite, and its instants are integer ms up to the latest clock reading.
pub(super) fn sound(d: &Decision) -> Result<(), TestCaseError> {
    prop_assert!(d.value.is_finite() && d.ts.is_finite() && d.remaining() >= 0.0, "{:?}", d);
    for at in [Some(d.reset_at), d.retry_at].into_iter().flatten() {
        prop_assert!((0.0..=CLOCK_END).contains(&at) && at.floor() == at, "{:?}", d);
    }
    Ok(())
}

/// Runs this many cases. Failures are printed and not saved: turn one into a vector or a test by hand.
pub(super) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
