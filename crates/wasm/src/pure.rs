//! The algebra on a state that the host keeps.

use crate::engine::{key_of, with};
use tidegate_core::{Outcome, State};
use tidegate_wire::{call, policy, refuse, write_decision, write_state};
use wasm_bindgen::prelude::wasm_bindgen;

/// A state from its two numbers; none if `value` is NaN.
pub(crate) fn state(value: f64, ts: f64) -> Result<Option<State>, u32> {
    if value.is_nan() { Ok(None) } else { State::new(value, ts).map(Some).map_err(refuse) }
}

/// The start of the key's window grid, ms: the policy's `start`, else the default that is derived from the key.
#[wasm_bindgen]
#[must_use]
pub fn start(limit: u32, length: u32) -> f64 {
    with(|engine| {
        let Some(limit) = engine.limits.get(limit as usize) else { return 0.0 };
        limit.policy().start().unwrap_or_else(|| limit.start(key_of(&engine.key, length)))
    })
}

/// Decides one call on a state (`value` is NaN: a fresh key) under the policy at [`numbers_at`](crate::numbers_at), whose
/// `start` is the key's. Needs no limit or table, so a build with this export alone is the algebra for hosts that
/// download it. With [`WRITES`](tidegate_wire::WRITES) in the status word, the sixth and seventh number are the
/// state to store. With `one_shard`, the policy's numbers are divided by its shards.
#[wasm_bindgen]
#[must_use]
pub fn evaluate(kind: u32, one_shard: u32, value: f64, ts: f64, now: f64, count: f64, flags: u32) -> u32 {
    with(|engine| {
        let numbers = &mut engine.numbers;
        let (policy, call, state) = match (policy(kind, numbers), call(now, count, flags), state(value, ts)) {
            (Ok(policy), Ok(call), Ok(state)) => (policy, call, state),
            (Err(status), ..) | (_, Err(status), _) | (.., Err(status)) => return status,
        };
        let bucket = if one_shard != 0 { policy.shard_bucket(0.0) } else { policy.bucket(0.0) };
        let Outcome { decision, write } = call.on(&bucket, state);
        write_decision(&decision, numbers) | write_state(write, numbers)
    })
}
