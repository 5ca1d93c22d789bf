//! The options and settings of a folder.

use crate::row;
use std::fmt;

/// When a write is synced to the disk, which matters after a power cut or a crash of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before each call that writes returns: nothing is lost, and the call takes as long as the disk.
    Always,
    /// By a snapshot within this many ms: a power cut loses at most the writes of that time.
    Every(u32),
}

impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sync::Always => f.write_str("always"),
            Sync::Every(ms) => write!(f, "every {ms} ms"),
        }
    }
}

/// Options for [`open`](crate::open). `None` keeps the setting of the folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Most states held, at least 1; default [`DEFAULT_MAX_KEYS`].
    pub max_keys: Option<u32>,
    /// Default [`DEFAULT_SYNC`].
    pub sync: Option<Sync>,
}

/// The default `max_keys` of a new folder, in states.
pub const DEFAULT_MAX_KEYS: u32 = 100_000;
/// The default `sync` of a new folder.
pub const DEFAULT_SYNC: Sync = Sync::Every(1000);

/// The settings that all processes with the folder open share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) secret: [u64; 2],
    pub(crate) max_keys: u32,
    pub(crate) sync: Sync,
}

/// Length of stored [`Settings`] in bytes, without their hash; the first number has the version of the format.
const BYTES: usize = 32;
const VERSION: u32 = 2;
/// The key of the settings. Keys of states have another length.
pub(crate) const KEY: &[u8] = b"settings";

impl Settings {
    pub(crate) fn to_row(self) -> Vec<u8> {
        let every = match self.sync {
            Sync::Always => 0,
            Sync::Every(ms) => ms,
        };
        let mut bytes = [0; BYTES];
        let numbers =
            [u64::from(VERSION) << 32 | u64::from(self.max_keys), u64::from(every), self.secret[0], self.secret[1]];
        for (place, number) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        row::sealed(KEY, &bytes)
    }

    pub(crate) fn from_row(row: &[u8]) -> Option<Settings> {
        let bytes: &[u8; BYTES] = row::opened(KEY, row)?.try_into().ok()?;
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        let (first, every) = (numbers.next()?, numbers.next()? as u32);
        let secret = [numbers.next()?, numbers.next()?];
        let sync = if every == 0 { Sync::Always } else { Sync::Every(every) };
        (first >> 32 == u64::from(VERSION)).then_some(Settings { secret, max_keys: first as u32, sync })
    }
}

/// Size of the data file in bytes: this many states in pages of the least fill, and room for writes during a snapshot,
/// which keeps the old pages.
pub(crate) fn map_size(max_keys: u32) -> u64 {
    const ROOM: u64 = 16 << 20;
    const A_KEY: u64 = 160;
    (ROOM + u64::from(max_keys) * A_KEY).next_multiple_of(1 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_back_and_another_version_does_not() {
        for sync in [Sync::Always, Sync::Every(1), Sync::Every(u32::MAX)] {
            let settings = Settings { secret: [1, u64::MAX], max_keys: 7, sync };
            assert_eq!(Settings::from_row(&settings.to_row()), Some(settings));
        }
        assert_eq!(Settings::from_row(&row::sealed(KEY, &[0; BYTES])), None);
        assert_eq!(Settings::from_row(&row::sealed(KEY, &[0; 31])), None);
    }
}
