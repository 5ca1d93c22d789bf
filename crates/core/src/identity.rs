//! Which limit: `name`, then `/shard` where shards > 1, then `:key` where there is a key.
//!
//! A name has neither `/` nor `:`, so two different (name, shard, key) never read the same. Keys are bytes of
//! generalized UTF-8: a JavaScript string with a lone surrogate has its own encoding, and collides with none.

use core::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// Longest name, in characters (all of one byte).
pub const MAX_NAME_BYTES: usize = 64;
/// Longest key, in bytes of UTF-8.
pub const MAX_KEY_BYTES: usize = 1024;
/// name, `/65535`, `:key`.
const MAX_IDENTITY_BYTES: usize = MAX_NAME_BYTES + 6 + 1 + MAX_KEY_BYTES;

/// A name or a key that breaks its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError<'a> {
    /// The name is empty, too long, or has another character.
    Name(&'a str),
    /// The key is too long; its length in bytes.
    Key(usize),
}

impl TextError<'_> {
    /// The end of the sentence "`name` must be …".
    pub const NAME_EXPECTS: &'static str = "1 to 64 characters of A-Z a-z 0-9 _ . -";
    /// The end of the sentence "`key` must be …".
    pub const KEY_EXPECTS: &'static str = "a string of at most 1024 bytes in UTF-8";
}

impl fmt::Display for TextError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::Name(name) => write!(f, "`name` must be {}; got {name:?}", Self::NAME_EXPECTS),
            TextError::Key(bytes) => write!(f, "`key` must be {}; got {bytes} bytes", Self::KEY_EXPECTS),
        }
    }
}

impl core::error::Error for TextError<'_> {}

/// Checks a limit's name: 1 to 64 characters of `A-Z a-z 0-9 _ . -`.
pub fn check_name(name: &str) -> Result<(), TextError<'_>> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let fits = !name.is_empty() && name.len() <= MAX_NAME_BYTES;
    if fits && name.bytes().all(legal) { Ok(()) } else { Err(TextError::Name(name)) }
}

/// Checks a key's length: at most 1024 bytes.
pub fn check_key(key: &[u8]) -> Result<(), TextError<'static>> {
    if key.len() <= MAX_KEY_BYTES { Ok(()) } else { Err(TextError::Key(key.len())) }
}

/// Bytes written one after another to a place of fixed size.
struct Line {
    bytes: [u8; MAX_IDENTITY_BYTES],
    length: usize,
}

impl Line {
    /// In decimal. By hand: formatting would be a tenth of the smallest build.
    fn push_number(&mut self, number: u32) -> Option<()> {
        if let Some(rest @ 1..) = number.checked_div(10) {
            self.push_number(rest)?;
        }
        self.push(&[b'0' + number.checked_rem(10)? as u8])
    }

    fn push(&mut self, part: &[u8]) -> Option<()> {
        let end = self.length.checked_add(part.len())?;
        for (place, byte) in self.bytes.get_mut(self.length..end)?.iter_mut().zip(part) {
            *place = *byte;
        }
        self.length = end;
        Some(())
    }
}

/// Hands the identity's bytes to `read`. `None` where name and key are longer than their rules allow.
///
/// ```
/// use tidegate_core::write_identity;
/// let text = write_identity("chat", Some(3), Some(b"user:1"), |bytes| bytes.to_vec());
/// assert_eq!(text.as_deref(), Some(b"chat/3:user:1".as_slice()));
/// ```
pub fn write_identity<R>(
    name: impl AsRef<[u8]>,
    shard: Option<u32>,
    key: Option<&[u8]>,
    read: impl FnOnce(&[u8]) -> R,
) -> Option<R> {
    let mut line = Line { bytes: [0; MAX_IDENTITY_BYTES], length: 0 };
    line.push(name.as_ref())?;
    if let Some(shard) = shard {
        line.push(b"/")?;
        line.push_number(shard)?;
    }
    if let Some(key) = key {
        line.push(b":")?;
        line.push(key)?;
    }
    line.bytes.get(..line.length).map(read)
}

/// The window grid of a key whose policy gives no `start`: `xxh3_64(identity without shard) mod period`. So windows of
/// different keys do not all open at once, and a forgotten window comes back on the same grid.
#[must_use]
#[inline(never)]
pub fn default_start(name: impl AsRef<[u8]>, key: Option<&[u8]>, period: f64) -> f64 {
    let hash = write_identity(name, None, key, xxh3_64).unwrap_or(0);
    // Exact: a period is a whole number of ms up to 2^40.
    hash.checked_rem(period as u64).unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{format, string::ToString};

    #[test]
    fn names_have_no_delimiter_and_keys_have_a_bound() {
        for name in ["a", "A-z_0.9", "__proto__", &"x".repeat(64)] {
            assert_eq!(check_name(name), Ok(()));
        }
        for name in ["", "a:b", "a/b", "a b", "é", &"x".repeat(65)] {
            assert_eq!(check_name(name), Err(TextError::Name(name)));
        }
        assert_eq!(check_key(&[0; 1024]), Ok(()));
        assert_eq!(
            check_key(&[0; 1025]).unwrap_err().to_string(),
            "`key` must be a string of at most 1024 bytes in UTF-8; got 1025 bytes"
        );
    }

    #[test]
    fn it_is_the_name_then_the_shard_then_the_key() {
        let text = |shard, key| write_identity("chat", shard, key, <[u8]>::to_vec).unwrap();
        assert_eq!(text(None, None), b"chat");
        assert_eq!(text(None, Some(b"")), b"chat:");
        for shard in [0, 7, 10, 99, 100, 4_095, 65_535] {
            assert_eq!(text(Some(shard), Some(b"user:1")), format!("chat/{shard}:user:1").as_bytes());
        }
    }

    #[test]
    fn the_longest_identity_fits_and_the_default_start_lies_in_the_period() {
        let name = "x".repeat(64);
        let longest = write_identity(&name, Some(65_535), Some(&[b'k'; 1024]), |bytes| bytes.len());
        assert_eq!(longest, Some(MAX_IDENTITY_BYTES));
        for period in [1.0, 60_000.0, 1_099_511_627_776.0] {
            let start = default_start("freeTrial", Some(b"user"), period);
            assert!((0.0..period).contains(&start));
        }
        assert_ne!(default_start("a", None, 1e9), default_start("a", Some(b""), 1e9));
    }
}
