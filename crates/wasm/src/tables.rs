//! Calls on a table.

use crate::engine::{key_of, status, with, with_key};
use tidegate_table::Table;
use tidegate_wire::{BROKEN, SAME_KEY, call, write_decision};
use wasm_bindgen::prelude::wasm_bindgen;

/// Creates a table of at most `max_keys` states and returns its number. The secret of its hash is the 16 bytes at
/// [`key_at`](crate::key_at), which should be random.
#[wasm_bindgen]
#[must_use]
pub fn table_new(max_keys: u32) -> u32 {
    with(|engine| {
        let (words, _) = engine.key.0.as_chunks::<8>();
        let secret = [words[0], words[1]].map(u64::from_le_bytes);
        engine.tables.insert(Table::new(max_keys as usize, secret)) as u32
    })
}

/// Makes room for the bytes of a dump and returns its address; [`restore`] reads them. 0 frees the room.
#[wasm_bindgen]
#[must_use]
pub fn room(bytes: u32) -> usize {
    with(|engine| {
        engine.bytes = alloc::vec![0; bytes as usize];
        engine.bytes.as_mut_ptr() as usize
    })
}

/// Creates a table from the dump at [`room`] and returns its number, or -1 if the bytes are not a dump.
#[wasm_bindgen]
#[must_use]
pub fn restore(max_keys: u32) -> i32 {
    with(|engine| {
        let bytes = core::mem::take(&mut engine.bytes);
        let table = Table::restore(max_keys as usize, &bytes);
        table.map_or(-1, |table| engine.tables.insert(table) as i32)
    })
}

/// Writes all states of a table as bytes. Their address and length are the first two numbers; [`room`] frees them. Returns
/// [`BROKEN`] if there is no such table, or no memory for the bytes.
#[wasm_bindgen]
#[must_use]
pub fn dump(table: u32) -> u32 {
    status(|engine| {
        let table = engine.tables.get(table as usize).filter(|table| has_room(table)).ok_or(BROKEN)?;
        engine.bytes = table.dump();
        engine.numbers[0] = engine.bytes.as_ptr() as usize as f64;
        engine.numbers[1] = engine.bytes.len() as f64;
        Ok(0)
    })
}

/// Whether there is memory for a dump: WebAssembly does not recover from an allocation that fails.
#[cfg(feature = "std")]
fn has_room(table: &Table) -> bool {
    let mut room: Vec<u8> = Vec::new();
    // A state has 32 bytes, and all else fewer than 64.
    let reserved = room.try_reserve_exact(table.stats().keys * 32 + 64).is_ok();
    // Otherwise the compiler leaves the allocation out, as one that is not used.
    core::hint::black_box(&room);
    reserved
}

/// `small` has no room for this.
#[cfg(not(feature = "std"))]
const fn has_room(_: &Table) -> bool {
    true
}

/// Frees a table.
#[wasm_bindgen]
pub fn table_drop(table: u32) {
    with(|engine| {
        engine.tables.try_remove(table as usize);
    });
}

/// Decides one call on one limit and key, which is the first `length` bytes at [`key_at`](crate::key_at);
/// [`NO_KEY`](tidegate_wire::NO_KEY) for none, [`SAME_KEY`] for the limit and key of the last call. Returns the status word.
#[wasm_bindgen]
#[must_use]
pub fn decide(table: u32, limit: u32, length: u32, now: f64, count: f64, flags: u32) -> u32 {
    status(|engine| {
        let call = call(now, count, flags)?;
        let table = engine.tables.get_mut(table as usize).ok_or(BROKEN)?;
        let limit = engine.limits.get(limit as usize).ok_or(BROKEN)?;
        if length != SAME_KEY {
            engine.last = (length, with_key(&engine.key, length, |key| limit.digest(key)));
        }
        let (length, digest) = engine.last;
        let decision = table.decide_digest(limit, key_of(&engine.key, length), digest, call);
        Ok(write_decision(&decision, &mut engine.numbers))
    })
}

/// Removes the key's state: the key is full again.
#[wasm_bindgen]
pub fn reset(table: u32, limit: u32, length: u32) -> u32 {
    status(|engine| {
        let table = engine.tables.get_mut(table as usize).ok_or(BROKEN)?;
        let limit = engine.limits.get(limit as usize).ok_or(BROKEN)?;
        table.reset(limit, key_of(&engine.key, length));
        Ok(0)
    })
}

/// keys, maxKeys, evicted, expired and bytes of a table, as the first five numbers.
#[wasm_bindgen]
#[must_use]
pub fn stats(table: u32) -> u32 {
    status(|engine| {
        let stats = engine.tables.get(table as usize).map(Table::stats).ok_or(BROKEN)?;
        engine.numbers[0] = stats.keys as f64;
        engine.numbers[1] = stats.max_keys as f64;
        engine.numbers[2] = stats.evicted as f64;
        engine.numbers[3] = stats.expired as f64;
        engine.numbers[4] = stats.bytes as f64;
        Ok(0)
    })
}
