//! A call and a decision as numbers, as both bindings pass them: a status word, and eight doubles.

use tidegate_core::{Config, Decision, Field, InputError, Kind, Policy, State, check_count, check_now};

use crate::call::{Call, Op};

/// Granted.
pub const OK: u32 = 1;
/// Granted for later.
pub const RESERVED: u32 = 1 << 1;
/// There is a state to write (pure evaluations only).
pub const WRITES: u32 = 1 << 2;
/// Where the two bits of the [`Reason`](tidegate_core::Reason) begin.
pub const REASON_SHIFT: u32 = 3;
/// Only the store can decide (leases only).
pub const UNDECIDED: u32 = 1 << 5;
/// An [`InputError`]: the lowest byte is the [`Field`].
pub const INPUT_ERROR: u32 = 1 << 8;
/// A limit or table that does not exist, or no longer.
pub const BROKEN: u32 = 1 << 9;

/// A key that is longer than a key may be (the addon only).
pub const KEY_TOO_LONG: u32 = 1 << 10;
/// A folder that cannot be used (the addon only): `fault` has the reason.
pub const FAILED: u32 = 1 << 11;

/// Allows tokens to be owed; the lowest two bits of the flags are the [`Op`].
pub const RESERVE: u32 = 1 << 2;
/// The call is about the limit without a key (the addon only).
pub const WITHOUT_KEY: u32 = 1 << 3;
/// Removes the state, and decides nothing (the addon only).
pub const RESET: u32 = 1 << 4;

/// The length, or end, of an absent key.
pub const NO_KEY: u32 = u32::MAX;
/// In place of a length: the limit and key of the last call (the WebAssembly engine only).
pub const SAME_KEY: u32 = u32::MAX - 1;
/// The number of no table and no limit.
pub const NONE: u32 = u32::MAX;

/// How many doubles a decision takes: value, ts, remaining, retryAt (NaN where there is none), resetAt, then the state
/// to write: value, ts.
pub const NUMBERS: usize = 8;

/// The call of these numbers, or the status word of an error.
#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub fn call(now: f64, count: f64, flags: u32) -> Result<Call, u32> {
    let op = match flags & 3 {
        0 => Op::Take,
        1 => Op::Check,
        2 => Op::Give,
        _ => Op::Charge,
    };
    let count = check_count(count).map_err(refuse)?;
    let now = check_now(now).map_err(refuse)?;
    Ok(Call { op, now, count, reserve: flags & RESERVE != 0 })
}

/// An error as a status word.
#[must_use]
pub fn refuse(error: InputError) -> u32 {
    INPUT_ERROR | error.field as u32
}

/// Writes a decision's numbers and returns its status word.
#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub fn write_decision(decision: &Decision, numbers: &mut [f64; NUMBERS]) -> u32 {
    numbers[0] = decision.value;
    numbers[1] = decision.ts;
    numbers[2] = decision.remaining();
    numbers[3] = decision.retry_at.unwrap_or(f64::NAN);
    numbers[4] = decision.reset_at;
    let reason = decision.reason.map_or(0, |reason| reason as u32);
    (u32::from(decision.ok) * OK) | (u32::from(decision.reserved) * RESERVED) | (reason << REASON_SHIFT)
}

/// Writes the state that a pure evaluation would store.
#[inline]
pub fn write_state(write: Option<State>, numbers: &mut [f64; NUMBERS]) -> u32 {
    let Some(state) = write else { return 0 };
    numbers[5] = state.value();
    numbers[6] = state.ts();
    WRITES
}

/// The numbers of a policy, in their order.
pub const POLICY: [Field; 6] =
    [Field::Rate, Field::Period, Field::Capacity, Field::MaxReserved, Field::Start, Field::Shards];

/// A policy from its kind, a place in [`Kind::ALL`], and its numbers, in the order of [`POLICY`]; NaN is an absent one.
pub fn policy(kind: u32, numbers: [f64; POLICY.len()]) -> Result<Policy, InputError> {
    let [rate, period, capacity, max_reserved, start, shards] = numbers;
    let given = |value: f64| (!value.is_nan()).then_some(value);
    Policy::new(&Config {
        kind: if kind == 0 { Kind::TokenBucket } else { Kind::FixedWindow },
        rate,
        period,
        capacity: given(capacity),
        max_reserved: given(max_reserved),
        start: given(start),
        shards: given(shards),
    })
}
