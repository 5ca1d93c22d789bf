//! A table as bytes, to outlive its process.
//!
//! A header of 32 bytes (8 of magic and version, the 16 of the secret, the number of states), then 32 bytes a state,
//! little-endian. Keys are not in it, only their keyed hashes; the secret is, so keep a dump as private as the table.

use crate::packed::Entry;
use crate::states::States;
use crate::table::Table;
use core::fmt;

const MAGIC: [u8; 8] = *b"tidegat1";

/// Bytes that are not a dump, or not a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptDump;

impl fmt::Display for CorruptDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`restore` must be the whole bytes of a dump")
    }
}

impl core::error::Error for CorruptDump {}

impl Table {
    /// Every state, as bytes. [`Table::restore`] answers as this table would.
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32 + self.keys * 32);
        bytes.extend_from_slice(&MAGIC);
        for number in [self.secret()[0], self.secret()[1], self.keys as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for entry in self.segments.iter().flat_map(|segment| segment.entries()) {
            bytes.extend_from_slice(&entry.to_bytes());
        }
        bytes
    }

    /// A table with the states of a dump, and its secret. Where they are more than `max_keys`, the fullest go.
    pub fn restore(max_keys: usize, bytes: &[u8]) -> Result<Table, CorruptDump> {
        let (header, states) = bytes.split_first_chunk::<32>().ok_or(CorruptDump)?;
        let number = |at: usize| header.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        let (entries, rest) = states.as_chunks::<32>();
        if !header.starts_with(&MAGIC) || !rest.is_empty() || entries.len() as u64 != number(24) {
            return Err(CorruptDump);
        }
        let entries: Vec<Entry> = entries.iter().map(Entry::from_bytes).collect();
        if entries.iter().any(|entry| !entry.is_sound()) {
            return Err(CorruptDump);
        }
        let mut table = Table::new(max_keys, [number(8), number(16)]);
        for entry in entries {
            if table.read(entry.digest()).is_some() {
                return Err(CorruptDump);
            }
            // At time 0 nothing is full yet: what is full by now goes in passing, later.
            table.insert(entry.digest(), entry, 0.0);
        }
        Ok(table)
    }
}
