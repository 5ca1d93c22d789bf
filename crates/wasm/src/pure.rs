//! The algebra on a state that the host keeps itself.

use crate::engine::{get, key_of, with};
use tidegate_core::{Outcome, State, check_now};
use tidegate_table::wire::{BROKEN, call, refuse, tell, tell_write};

/// A state from its two numbers; a `value` that is NaN stands for none.
pub(crate) fn state(value: f64, ts: f64) -> Result<Option<State>, u32> {
    if value.is_nan() { Ok(None) } else { State::new(value, ts).map(Some).map_err(refuse) }
}

/// The start of the key's window grid under this limit: what its policy gives, else the default from the key.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn start(limit: u32, length: u32) -> f64 {
    with(|engine| {
        let Some(limit) = get(&engine.limits, limit) else { return 0.0 };
        limit.policy().start().unwrap_or_else(|| limit.start(key_of(&engine.key, length)))
    })
}

/// What one call answers on a state (NaN as `value`: none) under this limit with this `start`, and what it would
/// write. The policy is taken as a whole, whatever its shards; with `one_shard`, as one of them.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn evaluate(
    limit: u32,
    one_shard: u32,
    start: f64,
    value: f64,
    ts: f64,
    now: f64,
    count: f64,
    flags: u32,
) -> u32 {
    with(|engine| {
        let (call, state) = match (call(now, count, flags, 0.0), state(value, ts)) {
            (Ok(call), Ok(state)) => (call, state),
            (Err(status), _) | (_, Err(status)) => return status,
        };
        let Some(limit) = get(&engine.limits, limit) else { return BROKEN };
        let policy = limit.policy();
        let rule = if one_shard != 0 { policy.shard_rule(start) } else { policy.rule(start) };
        let Outcome { decision, write } = call.on(&rule, state);
        tell(&decision, &mut engine.numbers) | tell_write(write, &mut engine.numbers)
    })
}

/// `refill`: what a state (NaN as `value`: none) is at `now`, as the first two numbers.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn project(limit: u32, start: f64, value: f64, ts: f64, now: f64) -> u32 {
    with(|engine| {
        let (now, state) = match (check_now(now).map_err(refuse), state(value, ts)) {
            (Ok(now), Ok(state)) => (now, state),
            (Err(status), _) | (_, Err(status)) => return status,
        };
        let Some(limit) = get(&engine.limits, limit) else { return BROKEN };
        let projected = limit.policy().rule(start).project(state, now);
        engine.numbers[0] = projected.value();
        engine.numbers[1] = projected.ts();
        0
    })
}

/// Least whole ms, from `now` on, at which a state (NaN as `value`: none) is full, as the first number.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn full_at(limit: u32, one_shard: u32, start: f64, value: f64, ts: f64, now: f64) -> u32 {
    with(|engine| {
        let (now, state) = match (check_now(now).map_err(refuse), state(value, ts)) {
            (Ok(now), Ok(state)) => (now, state),
            (Err(status), _) | (_, Err(status)) => return status,
        };
        let Some(limit) = get(&engine.limits, limit) else { return BROKEN };
        let policy = limit.policy();
        let rule = if one_shard != 0 { policy.shard_rule(start) } else { policy.rule(start) };
        engine.numbers[0] = rule.full_at(state, now);
        0
    })
}
