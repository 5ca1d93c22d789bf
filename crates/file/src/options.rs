//! The options and settings of a folder.

use crate::row;
use std::fmt;
use std::num::NonZeroU32;

/// When a write is synced to the disk, which matters after a power cut or a crash of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Before each call that writes returns: nothing is lost, and the call takes as long as the disk.
    Always,
    /// By a snapshot within this many ms: a power cut loses at most the writes of that time.
    Every(NonZeroU32),
}

impl fmt::Display for SyncMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyncMode::Always => f.write_str("always"),
            SyncMode::Every(ms) => write!(f, "every {ms} ms"),
        }
    }
}

/// Options for [`open`](crate::open). `None` keeps the setting of the folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Most states held; default [`DEFAULT_MAX_KEYS`].
    pub max_keys: Option<NonZeroU32>,
    /// Default [`DEFAULT_SYNC`].
    pub sync: Option<SyncMode>,
}

/// The default `max_keys` of a new folder, in states.
pub const DEFAULT_MAX_KEYS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
/// The default `sync` of a new folder.
pub const DEFAULT_SYNC: SyncMode = SyncMode::Every(NonZeroU32::new(1000).unwrap());

/// The settings that all processes with the folder open share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) secret: [u64; 2],
    pub(crate) max_keys: NonZeroU32,
    pub(crate) sync: SyncMode,
}

/// Length of stored [`Settings`] in bytes, without their hash; the first number has the version of the format.
const BYTES: usize = 32;
const VERSION: u32 = 2;
/// The key of the settings. Keys of states have another length.
pub(crate) const KEY: &[u8] = b"settings";

impl Settings {
    pub(crate) fn to_row(self) -> Vec<u8> {
        let every = match self.sync {
            SyncMode::Always => 0,
            SyncMode::Every(ms) => ms.get(),
        };
        let numbers = [
            u64::from(VERSION) << 32 | u64::from(self.max_keys.get()),
            u64::from(every),
            self.secret[0],
            self.secret[1],
        ];
        row::sealed(KEY, &numbers.map(u64::to_le_bytes).concat())
    }

    pub(crate) fn from_row(row: &[u8]) -> Option<Settings> {
        let bytes: &[u8; BYTES] = row::opened(KEY, row)?.try_into().ok()?;
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        let (first, every) = (numbers.next()?, numbers.next()? as u32);
        let secret = [numbers.next()?, numbers.next()?];
        let max_keys = NonZeroU32::new(first as u32)?;
        let sync = NonZeroU32::new(every).map_or(SyncMode::Always, SyncMode::Every);
        (first >> 32 == u64::from(VERSION)).then_some(Settings { secret, max_keys, sync })
    }
}

/// Size of the data file in bytes: this many states in pages of the least fill, and room for writes during a snapshot,
/// which keeps the old pages.
pub(crate) fn map_size(max_keys: NonZeroU32) -> u64 {
    const ROOM: u64 = 16 << 20;
    const A_KEY: u64 = 160;
    (ROOM + u64::from(max_keys.get()) * A_KEY).next_multiple_of(1 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_back_and_another_version_does_not() {
        for sync in [SyncMode::Always, SyncMode::Every(NonZeroU32::MIN), SyncMode::Every(NonZeroU32::MAX)] {
            let settings = Settings { secret: [1, u64::MAX], max_keys: DEFAULT_MAX_KEYS, sync };
            assert_eq!(Settings::from_row(&settings.to_row()), Some(settings));
        }
        assert_eq!(Settings::from_row(&row::sealed(KEY, &[0; BYTES])), None);
        assert_eq!(Settings::from_row(&row::sealed(KEY, &[0; 31])), None);
    }
}
