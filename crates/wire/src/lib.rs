//! A policy, a call and a decision as both bindings pass them: a status word, and eight doubles.

#![no_std]
#![forbid(unsafe_code)]

use tidegate_core::{Config, Decision, Field, InputError, Kind, Policy, State};
use tidegate_table::{Call, Op};

/// Status bit: granted.
pub const OK: u32 = 1;
/// Status bit: granted as a reservation.
pub const RESERVED: u32 = 1 << 1;
/// Status bit, of pure evaluations only: there is a state to write.
pub const WRITES: u32 = 1 << 2;
/// Position of the two status bits of the [`Reason`](tidegate_core::Reason).
pub const REASON_SHIFT: u32 = 3;
/// Status bit, of leases only: only the store can decide.
pub const UNDECIDED: u32 = 1 << 5;
/// Status bit: an [`InputError`]. The lowest byte is the [`Field`].
pub const INPUT_ERROR: u32 = 1 << 8;
/// Status bit: the limit or table does not exist.
pub const BROKEN: u32 = 1 << 9;

/// Status bit, of the addon only: the key is too long.
pub const KEY_TOO_LONG: u32 = 1 << 10;
/// Status bit, of the addon only: the folder cannot be used. `fault` returns the reason.
pub const FAILED: u32 = 1 << 11;

/// The bits of the flags that are the [`Op`].
pub const OP: u32 = 7;
/// Flag: tokens may be owed.
pub const RESERVE: u32 = 1 << 3;
/// Flag, of the addon only: the call has no key.
pub const WITHOUT_KEY: u32 = 1 << 4;
/// Flag, of the addon only: removes the state, and decides nothing.
pub const RESET: u32 = 1 << 5;

/// The length, or end, of an absent key.
pub const NO_KEY: u32 = u32::MAX;
/// In place of a length, in the WebAssembly engine only: the limit and key of the last call.
pub const SAME_KEY: u32 = u32::MAX - 1;
/// Keys of at most this many bytes are written to the WebAssembly engine in words of 4 bytes.
pub const SHORT_KEY_BYTES: u32 = 24;
/// Number that stands for no table and no limit.
pub const NONE: u32 = u32::MAX;

/// How many doubles a call has: at first the numbers of a [`POLICY`] or of the call, and afterwards the decision's: value,
/// ts, remaining, retryAt (NaN if there is none), resetAt, then the state to write: value, ts.
pub const NUMBERS: usize = 8;

/// The call with these numbers.
///
/// # Errors
/// The status word of the first number that is out of its range.
#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub fn call(now: f64, count: f64, flags: u32) -> Result<Call, u32> {
    let op = match flags & OP {
        0 => Op::Take,
        1 => Op::Check,
        2 => Op::Give,
        3 => Op::Charge,
        _ => Op::Block,
    };
    let call = Call::new(op, now, count).map_err(refuse)?;
    Ok(Call { reserve: flags & RESERVE != 0, ..call })
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

/// The fields of a policy, in the order of their numbers.
pub const POLICY: [Field; 6] =
    [Field::Rate, Field::Period, Field::Capacity, Field::MaxReserved, Field::Start, Field::Shards];

/// A policy from its kind, an index in [`Kind::ALL`], and the first of the eight doubles, in the order of [`POLICY`].
/// NaN is an absent number.
///
/// # Errors
/// The status word of the first number that is out of its range.
pub fn policy(kind: u32, numbers: &[f64; NUMBERS]) -> Result<Policy, u32> {
    let [rate, period, capacity, max_reserved, start, shards, ..] = *numbers;
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
    .map_err(refuse)
}
