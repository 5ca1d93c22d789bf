//! Calls on several states: all or nothing, and the shards of one limit on states that the host keeps.

use crate::engine::{Engine, Staged, get, key_of, with};
use crate::pure::state;
use alloc::vec::Vec;
use tidegate_core::{Pool, check_now, pick_two, take_better};
use tidegate_table::Member;
use tidegate_table::Op;
use tidegate_table::wire::{BROKEN, NUMBERS, OK, WRITES, call, refuse, tell};
use wasm_bindgen::prelude::wasm_bindgen;

/// Adds one request to the next [`all_commit`]. Returns 0, or the status word of an error, which clears all requests.
#[wasm_bindgen]
#[must_use]
pub fn all_stage(limit: u32, length: u32, count: f64, reserve: u32, random: f64) -> u32 {
    with(|engine| {
        if let Err(status) = call(0.0, count, 0, random) {
            engine.staged.clear();
            return status;
        }
        if engine.staged.is_empty() {
            engine.bytes.clear();
        }
        let key = key_of(&engine.key, length).map(|key| {
            let begin = engine.bytes.len();
            engine.bytes.extend_from_slice(key);
            (begin, engine.bytes.len())
        });
        engine.staged.push(Staged { limit, key, count, reserve: reserve != 0, random });
        0
    })
}

/// Clears the requests of [`all_stage`].
#[wasm_bindgen]
pub fn all_clear() {
    with(|engine| engine.staged.clear());
}

/// Takes the tokens of all staged requests or of none; without `takes`, only decides. Leaves eight doubles for each
/// request at [`pool_at`], of which the last is its status word. Returns the status word of all requests; the first
/// number is their retryAt.
#[wasm_bindgen]
#[must_use]
pub fn all_commit(table: u32, now: f64, takes: u32) -> u32 {
    with(|engine| {
        let staged = core::mem::take(&mut engine.staged);
        let now = match check_now(now) {
            Ok(now) => now,
            Err(error) => return refuse(error),
        };
        let mut members = Vec::with_capacity(staged.len());
        for Staged { limit, key, count, reserve, random } in &staged {
            let Some(limit) = get(&engine.limits, *limit) else { return BROKEN };
            let key = key.and_then(|(begin, end)| engine.bytes.get(begin..end));
            members.push(Member { limit, key, count: *count, reserve: *reserve, random: *random });
        }
        let Some(Some(table)) = engine.tables.get_mut(table as usize) else { return BROKEN };
        let (ok, retry_at, decisions) = table.take_all(&members, now, takes != 0);
        engine.pool.clear();
        for decision in &decisions {
            let mut numbers = [0.0; NUMBERS];
            numbers[NUMBERS - 1] = f64::from(tell(decision, &mut numbers));
            let (pairs, _) = numbers.as_chunks::<2>();
            engine.pool.extend_from_slice(pairs);
        }
        engine.numbers[0] = retry_at.unwrap_or(f64::NAN);
        u32::from(ok) * OK
    })
}

/// Makes room for `states` states and returns its address: for each state value and ts, with NaN as value for none.
#[wasm_bindgen]
#[must_use]
pub fn pool_at(states: u32) -> usize {
    with(|engine| {
        engine.pool.resize((states as usize).max(engine.pool.len()), [f64::NAN; 2]);
        engine.pool.as_ptr() as usize
    })
}

/// Reads the first `states` states at [`pool_at`]; a status word, where one is none.
fn read_states(engine: &mut Engine, states: u32) -> u32 {
    engine.pool_states.clear();
    for [value, ts] in engine.pool.iter().take(states as usize) {
        match state(*value, *ts) {
            Ok(state) => engine.pool_states.push(state),
            Err(status) => return status,
        }
    }
    0
}

/// The two shards to read for a uniform random number in [0, 1): the first plus 65,536 times the second.
#[wasm_bindgen]
#[must_use]
pub fn pool_pick(limit: u32, random: f64) -> u32 {
    with(|engine| {
        let shards = get(&engine.limits, limit).map_or(2, |limit| limit.policy().shards());
        let (first, second) = pick_two(random, shards);
        first | second << 16
    })
}

/// Decides one call on the first `states` states at [`pool_at`]. With `pair`, they are two of the shards, and the better
/// one decides: the sixth and seventh number are the state to store, the eighth is 0 or 1, the shard. Else they are all
/// shards as one pool, and with [`WRITES`] in the status word the new states are at [`pool_at`].
#[wasm_bindgen]
#[must_use]
pub fn pool_decide(limit: u32, states: u32, pair: u32, start: f64, now: f64, count: f64, flags: u32) -> u32 {
    with(|engine| {
        let call = match call(now, count, flags, 0.0) {
            Ok(call) => call,
            Err(status) => return status,
        };
        let Some(policy) = get(&engine.limits, limit).map(|limit| *limit.policy()) else { return BROKEN };
        let refused = read_states(engine, states);
        if refused != 0 {
            return refused;
        }
        if let (true, [first, second]) = (pair != 0, engine.pool_states.as_slice()) {
            let (which, outcome) = take_better(&policy, start, [*first, *second], call.now, call.count);
            let write = outcome.write.filter(|_| call.op == Op::Take);
            let status = tell(&outcome.decision, &mut engine.numbers);
            engine.numbers[7] = which as f64;
            return status | tidegate_table::wire::tell_write(write, &mut engine.numbers);
        }
        let mut pool = Pool::new(&policy, start, &mut engine.pool_states, call.now);
        let (decision, writes) = call.on_pool(&mut pool);
        if writes {
            for (place, state) in engine.pool.iter_mut().zip(&engine.pool_states) {
                *place = state.map_or([f64::NAN; 2], |state| [state.value(), state.ts()]);
            }
        }
        tell(&decision, &mut engine.numbers) | (u32::from(writes) * WRITES)
    })
}

/// The sum of the first `states` states at [`pool_at`] as it is at `now`, as the first two numbers.
#[wasm_bindgen]
#[must_use]
pub fn pool_value(limit: u32, states: u32, start: f64, now: f64) -> u32 {
    with(|engine| {
        let now = match check_now(now) {
            Ok(now) => now,
            Err(error) => return refuse(error),
        };
        let Some(policy) = get(&engine.limits, limit).map(|limit| *limit.policy()) else { return BROKEN };
        let refused = read_states(engine, states);
        if refused != 0 {
            return refused;
        }
        let sum = Pool::new(&policy, start, &mut engine.pool_states, now).state();
        engine.numbers[0] = sum.value();
        engine.numbers[1] = sum.ts();
        0
    })
}
