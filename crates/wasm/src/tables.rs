//! The table's calls.

use crate::engine::{NO_KEY, SAME_KEY, get, key_of, put, with, with_key};
use tidegate_core::check_now;
use tidegate_table::Table;
use tidegate_table::wire::{BROKEN, call, refuse, tell};

/// A table for at most `max_keys` states, hashing under the 16 random bytes at [`key_at`](crate::key_at).
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn table_new(max_keys: u32) -> u32 {
    with(|engine| {
        let (words, _) = engine.key.0.as_chunks::<8>();
        let secret = [words[0], words[1]].map(u64::from_le_bytes);
        put(&mut engine.tables, Table::new(max_keys as usize, secret))
    })
}

/// Makes room for so many bytes, and tells where the host writes them, for [`restore`]; 0 gives the room back.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn room(bytes: u32) -> usize {
    with(|engine| {
        engine.bytes = alloc::vec![0; bytes as usize];
        engine.bytes.as_ptr() as usize
    })
}

/// A table with the states of a dump, whose bytes are where [`room`] told, or -1 where they are none.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn restore(max_keys: u32) -> i32 {
    with(|engine| {
        let bytes = core::mem::take(&mut engine.bytes);
        let table = Table::restore(max_keys as usize, &bytes);
        table.map_or(-1, |table| put(&mut engine.tables, table) as i32)
    })
}

/// All states of a table as bytes: where they begin and how many they are, as the first two numbers. They are kept until
/// the next call of [`room`].
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn dump(table: u32) -> u32 {
    with(|engine| {
        let Some(bytes) = get(&engine.tables, table).map(Table::dump) else { return BROKEN };
        engine.bytes = bytes;
        engine.numbers[0] = engine.bytes.as_ptr() as usize as f64;
        engine.numbers[1] = engine.bytes.len() as f64;
        0
    })
}

/// Frees a table.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn table_drop(table: u32) {
    with(|engine| {
        if let Some(slot) = engine.tables.get_mut(table as usize) {
            *slot = None;
        }
    });
}

/// One call on one limit and key: the key's `length` bytes at [`key_at`](crate::key_at), `u32::MAX` for no key,
/// `u32::MAX - 1` for the same limit and key as in the last call. Returns the status word.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn decide(table: u32, limit: u32, length: u32, now: f64, count: f64, flags: u32, random: f64) -> u32 {
    with(|engine| {
        let call = match call(now, count, flags, random) {
            Ok(call) => call,
            Err(status) => return status,
        };
        let (Some(Some(table)), Some(limit)) = (engine.tables.get_mut(table as usize), get(&engine.limits, limit))
        else {
            return BROKEN;
        };
        if length != SAME_KEY {
            engine.last = (length, with_key(&engine.key, length, |key| limit.digest(key)));
        }
        let (length, digest) = engine.last;
        let decision = table.decide_digest(limit, key_of(&engine.key, length), digest, call);
        tell(&decision, &mut engine.numbers)
    })
}

/// The limit's two numbers at `now`, as the first two of [`numbers_at`](crate::numbers_at).
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn value(table: u32, limit: u32, length: u32, now: f64) -> u32 {
    with(|engine| {
        let now = match check_now(now) {
            Ok(now) => now,
            Err(error) => return refuse(error),
        };
        let (Some(table), Some(limit)) = (get(&engine.tables, table), get(&engine.limits, limit)) else {
            return BROKEN;
        };
        let state = table.value(limit, key_of(&engine.key, length), now);
        engine.numbers[0] = state.value();
        engine.numbers[1] = state.ts();
        0
    })
}

/// Forgets the limit on this key.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn reset(table: u32, limit: u32, length: u32) -> u32 {
    with(|engine| {
        let (Some(Some(table)), Some(limit)) = (engine.tables.get_mut(table as usize), get(&engine.limits, limit))
        else {
            return BROKEN;
        };
        table.reset(limit, key_of(&engine.key, length));
        engine.last.0 = NO_KEY;
        0
    })
}

/// keys, maxKeys, evicted, expired and bytes, as the first five numbers.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn stats(table: u32) -> u32 {
    with(|engine| {
        let Some(stats) = get(&engine.tables, table).map(Table::stats) else { return BROKEN };
        engine.numbers[0] = stats.keys as f64;
        engine.numbers[1] = stats.max_keys as f64;
        engine.numbers[2] = stats.evicted as f64;
        engine.numbers[3] = stats.expired as f64;
        engine.numbers[4] = stats.bytes as f64;
        0
    })
}
