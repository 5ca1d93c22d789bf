//! A table as bytes, to keep across restarts.
//!
//! A header of 32 bytes (8 of magic and version, 16 of the secret, 8 of the latest instant of the dropped states), then 32
//! bytes per state, and 8 of a checksum, little-endian. It holds the keyed hashes of the keys, not the keys, and the secret
//! of the hash. Keep a dump as private as the table.

use crate::call::{States, Stored};
use crate::packed::Entry;
use crate::table::Table;
use alloc::vec::Vec;
use core::fmt;

/// Length of the header, in words of 8 bytes.
const HEADER: usize = 4;
const MAGIC: [u8; 8] = *b"tidegat2";

/// What the last word of a dump is, by all words before it: it differs after any damage to one word, and after almost any
/// other.
#[must_use]
pub fn checksum(words: &[[u8; 8]]) -> u64 {
    let mut sum: u64 = 0;
    for word in words {
        // Each step is a bijection of the sum, and of the word.
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b1);
    }
    sum
}

/// Bytes that are not a complete dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptDump;

impl fmt::Display for CorruptDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`restore` must be all bytes of a dump")
    }
}

impl core::error::Error for CorruptDump {}

impl Table {
    /// Every state, as bytes for [`Table::restore`].
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        let mut words: Vec<[u8; 8]> = Vec::with_capacity(HEADER + self.keys * 4 + 1);
        words.push(MAGIC);
        for half in self.secret() {
            words.push(half.to_le_bytes());
        }
        let mut fresh_from: f64 = 0.0;
        for segment in &self.segments {
            fresh_from = fresh_from.max(segment.fresh_from);
        }
        words.push(fresh_from.to_le_bytes());
        for segment in &self.segments {
            for entry in segment.entries() {
                for word in entry.to_words() {
                    words.push(word.to_le_bytes());
                }
            }
        }
        words.push(checksum(&words).to_le_bytes());
        words.into_flattened()
    }

    /// A table with the states and the secret of a dump. Of more than `max_keys` states, the fullest are dropped.
    ///
    /// # Errors
    /// If the bytes are not a complete dump.
    pub fn restore(max_keys: usize, bytes: &[u8]) -> Result<Table, CorruptDump> {
        let (words, []) = bytes.as_chunks() else { return Err(CorruptDump) };
        let Some((sum, words)) = words.split_last() else { return Err(CorruptDump) };
        let [MAGIC, low, high, fresh_from, states @ ..] = words else { return Err(CorruptDump) };
        let (states, []) = states.as_chunks::<4>() else { return Err(CorruptDump) };
        let number = |word: &[u8; 8]| u64::from_le_bytes(*word);
        let mut fresh_from = f64::from_bits(number(fresh_from));
        if number(sum) != checksum(words) || !fresh_from.is_finite() {
            return Err(CorruptDump);
        }
        let mut table = Table::new(max_keys, [number(low), number(high)]);
        let mut latest: f64 = 0.0;
        for state in states {
            let entry = Entry::from_words(state.map(|word| number(&word)));
            latest = latest.max(entry.state().ts());
            if !entry.is_sound() || !matches!(table.read(entry.digest()), Ok(Stored::Absent { .. })) {
                return Err(CorruptDump);
            }
            // At time 0 no state is full; later calls drop those that are.
            table.insert(entry, 0.0);
        }
        if table.keys < states.len() {
            // There was no room for some. Their instants count too, and none is later than the latest of all.
            fresh_from = fresh_from.max(latest);
        }
        for segment in &mut table.segments {
            segment.fresh_from = fresh_from;
        }
        Ok(table)
    }
}
