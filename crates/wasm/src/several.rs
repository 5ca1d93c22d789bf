//! Calls on several states: all or nothing, and the shards of one limit that the host keeps.

use crate::engine::{key_of, status, with};
use crate::pure::state;
use alloc::vec::Vec;
use tidegate_core::{Pool, check_now};
use tidegate_table::{Member, Op};
use tidegate_wire::{BROKEN, NUMBERS, OK, WRITES, call, policy, refuse, write_decision};
use wasm_bindgen::prelude::wasm_bindgen;

/// Adds one request to the next [`all_commit`]. Returns 0, or the status word of an error.
#[wasm_bindgen]
#[must_use]
pub fn all_stage(limit: u32, length: u32, count: f64, reserve: u32) -> u32 {
    status(|engine| {
        call(0.0, count, 0)?;
        let limit = engine.limits.get(limit as usize).ok_or(BROKEN)?;
        engine.staged.push(Member::new(limit, key_of(&engine.key, length), count, reserve != 0));
        Ok(0)
    })
}

/// Clears the requests of [`all_stage`].
#[wasm_bindgen]
pub fn all_clear() {
    with(|engine| engine.staged.clear());
}

/// Takes the tokens of all staged requests or of none; without `takes`, only decides. Leaves eight doubles for each
/// request, of which the last is its status word. Returns the status word of all requests; the first number is their
/// retryAt, the second the address of their doubles.
#[wasm_bindgen]
#[must_use]
pub fn all_commit(table: u32, now: f64, takes: u32) -> u32 {
    status(|engine| {
        let staged = core::mem::take(&mut engine.staged);
        let now = check_now(now).map_err(refuse)?;
        let table = engine.tables.get_mut(table as usize).ok_or(BROKEN)?;
        let all = table.take_all(&staged, now, takes != 0);
        engine.pool.clear();
        for decision in &all.decisions {
            let mut numbers = [0.0; NUMBERS];
            numbers[NUMBERS - 1] = f64::from(write_decision(decision, &mut numbers));
            let (pairs, _) = numbers.as_chunks::<2>();
            engine.pool.extend_from_slice(pairs);
        }
        engine.numbers[0] = all.retry_at.unwrap_or(f64::NAN);
        engine.numbers[1] = engine.pool.as_ptr() as usize as f64;
        Ok(u32::from(all.ok) * OK)
    })
}

/// Makes room for `states` states and returns its address: for each state value and ts, with NaN as value for none.
#[wasm_bindgen]
#[must_use]
pub fn pool_at(states: u32) -> usize {
    with(|engine| {
        engine.pool.resize((states as usize).max(engine.pool.len()), [f64::NAN; 2]);
        engine.pool.as_mut_ptr() as usize
    })
}

/// Decides one call on the first `states` states at [`pool_at`], all shards of the limit taken as one, under the policy
/// at [`numbers_at`](crate::numbers_at). With [`WRITES`] in the status word, the new states are at [`pool_at`].
#[wasm_bindgen]
#[must_use]
pub fn pool_decide(kind: u32, states: u32, now: f64, count: f64, flags: u32) -> u32 {
    status(|engine| {
        let (policy, call) = (policy(kind, &engine.numbers)?, call(now, count, flags)?);
        let mut shards = Vec::new();
        for [value, ts] in engine.pool.iter().take(states as usize) {
            shards.push(state(*value, *ts)?);
        }
        let mut pool = Pool::new(&policy, 0.0, &mut shards, call.now);
        let (decision, writes) = match call.op {
            Op::Take => pool.take(call.count, call.reserve),
            Op::Check => (pool.take(call.count, call.reserve).0, false),
            Op::Give => pool.give(call.count),
            Op::Charge => pool.charge(call.count),
            Op::Block => (pool.block(call.count), true),
        };
        if writes {
            for (place, state) in engine.pool.iter_mut().zip(&shards) {
                *place = state.map_or([f64::NAN; 2], |state| [state.value(), state.ts()]);
            }
        }
        Ok(write_decision(&decision, &mut engine.numbers) | (u32::from(writes) * WRITES))
    })
}
