//! How a folder is set up.

use std::fmt;

/// When a write reaches the disk itself: this matters after a power cut or a crash of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before each call that writes is answered: nothing is lost. A call takes as long as the disk.
    Always,
    /// By a snapshot at most so many ms later: at most so much is lost.
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

/// Settings of a folder. The default of each is the setting that the folder is open with, or has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Most states held, at least 1; default [`DEFAULT_MAX_KEYS`].
    pub max_keys: Option<u32>,
    /// Default [`DEFAULT_SYNC`].
    pub sync: Option<Sync>,
}

/// The default of a new folder, in states.
pub const DEFAULT_MAX_KEYS: u32 = 100_000;
/// The default of a new folder.
pub const DEFAULT_SYNC: Sync = Sync::Every(1000);

/// What all processes that have a folder open agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) secret: [u64; 2],
    pub(crate) max_keys: u32,
    pub(crate) sync: Sync,
}

/// Bytes of [`Settings`] as they are stored; the first is the version of what is stored here.
pub(crate) const BYTES: usize = 32;
const VERSION: u32 = 1;
/// Their key among the states, whose keys have another length.
pub(crate) const KEY: &[u8] = b"settings";

impl Settings {
    pub(crate) fn to_bytes(self) -> [u8; BYTES] {
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
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Settings> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        let (first, every) = (numbers.next()?, numbers.next()? as u32);
        let secret = [numbers.next()?, numbers.next()?];
        let sync = if every == 0 { Sync::Always } else { Sync::Every(every) };
        (first >> 32 == u64::from(VERSION)).then_some(Settings { secret, max_keys: first as u32, sync })
    }
}

/// Bytes of the data file: what so many states take where pages are as empty as they get, and room for what calls
/// write while a snapshot keeps the pages before them.
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
            assert_eq!(Settings::from_bytes(&settings.to_bytes()), Some(settings));
        }
        assert_eq!(Settings::from_bytes(&[0; BYTES]), None);
        assert_eq!(Settings::from_bytes(&[0; 31]), None);
    }
}
