//! The data of the module: limits and tables by number, and the two areas that the host reads and writes.

use alloc::vec::Vec;
use atomic_refcell::AtomicRefCell;
use slab::Slab;
use tidegate_core::MAX_KEY_BYTES;
use tidegate_table::{Digest, Limit, Member, Table};
use tidegate_wire::{BROKEN, NO_KEY, NUMBERS, SHORT_KEY_BYTES, policy};
use wasm_bindgen::prelude::wasm_bindgen;

/// Where the host writes a key: it may write whole words of 4 bytes, so a little past the longest key.
const KEY_ROOM: usize = MAX_KEY_BYTES + 8;

#[repr(align(8))]
pub(crate) struct KeyBytes(pub(crate) [u8; KEY_ROOM]);

pub(crate) struct Engine {
    pub(crate) key: KeyBytes,
    pub(crate) numbers: [f64; NUMBERS],
    pub(crate) limits: Slab<Limit>,
    pub(crate) tables: Slab<Table>,
    pub(crate) staged: Vec<Member>,
    pub(crate) pool: Vec<[f64; 2]>,
    /// A dump that was written, or that is to be restored.
    pub(crate) bytes: Vec<u8>,
    /// Length and digest of the last key.
    pub(crate) last: (u32, Digest),
}

/// One per thread, since each thread has its own instance of this module.
static ENGINE: AtomicRefCell<Engine> = AtomicRefCell::new(Engine {
    key: KeyBytes([0; KEY_ROOM]),
    numbers: [0.0; NUMBERS],
    limits: Slab::new(),
    tables: Slab::new(),
    staged: Vec::new(),
    pool: Vec::new(),
    bytes: Vec::new(),
    last: (NO_KEY, Digest::NONE),
});

#[inline]
pub(crate) fn with<R>(run: impl FnOnce(&mut Engine) -> R) -> R {
    run(&mut ENGINE.borrow_mut())
}

/// Runs a call, and returns its status word, of an error too.
#[inline]
pub(crate) fn status(run: impl FnOnce(&mut Engine) -> Result<u32, u32>) -> u32 {
    with(run).unwrap_or_else(|status| status)
}

/// The key that the host wrote, or none.
#[inline]
pub(crate) fn key_of(key: &KeyBytes, length: u32) -> Option<&[u8]> {
    if length == NO_KEY { None } else { key.0.get(..(length as usize).min(MAX_KEY_BYTES)) }
}

/// Calls `read` with the key, or with a copy of a short key. The host has just written a short key in words of 4 bytes;
/// a hash that reads 8 bytes at a time would wait until they have left the processor's store buffer.
#[inline]
pub(crate) fn with_key<R>(key: &KeyBytes, length: u32, read: impl FnOnce(Option<&[u8]>) -> R) -> R {
    if length > SHORT_KEY_BYTES {
        return read(key_of(key, length));
    }
    let mut copy = [0; SHORT_KEY_BYTES as usize];
    let (words, _) = key.0.as_chunks::<8>();
    for (place, word) in copy.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        let [a, b, c, d, e, f, g, h] = *word;
        let (low, high) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        *place = (u64::from(low) | u64::from(high) << 32).to_le_bytes();
    }
    read(copy.get(..length as usize))
}

/// The address where the host writes a key or a name: 1024 bytes, aligned to 8, and 8 more that are never read.
#[wasm_bindgen]
#[must_use]
pub fn key_at() -> usize {
    with(|engine| engine.key.0.as_mut_ptr() as usize)
}

/// The address of the eight doubles: the host writes a policy there, and a call leaves its decision.
#[wasm_bindgen]
#[must_use]
pub fn numbers_at() -> usize {
    with(|engine| engine.numbers.as_mut_ptr() as usize)
}

/// Creates a limit for a table ([`NONE`](tidegate_wire::NONE): for none). Its name is the first `length` bytes at [`key_at`], its policy
/// is at [`numbers_at`]: see [`policy`]. Returns the limit's number, or a negative status word.
#[wasm_bindgen]
pub fn limit_new(table: u32, length: u32, kind: u32) -> i32 {
    with(|engine| {
        let made = policy(kind, &engine.numbers).and_then(|policy| {
            let name = key_of(&engine.key, length).ok_or(BROKEN)?;
            let secret = engine.tables.get(table as usize).map_or([0; 2], Table::secret);
            Ok(engine.limits.insert(Limit::new(secret, name, policy)))
        });
        made.map_or_else(|status| -(status as i32), |limit| limit as i32)
    })
}

/// Frees a limit. A later limit may have its number.
#[wasm_bindgen]
pub fn limit_drop(limit: u32) {
    with(|engine| {
        engine.limits.try_remove(limit as usize);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_any_length_is_read_whole() {
        let key = KeyBytes(core::array::from_fn(|byte| byte as u8));
        for length in 0..=MAX_KEY_BYTES {
            with_key(&key, length as u32, |read| assert_eq!(read, key.0.get(..length)));
        }
        with_key(&key, NO_KEY, |read| assert_eq!(read, None));
    }
}
