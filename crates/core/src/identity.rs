//! The identity of a state: `name`, then `:key` if there is a key.
//!
//! A name has no `:`, so two different pairs of name and key have different identities. Keys are bytes of generalized
//! UTF-8: a JavaScript string with a lone surrogate has its own encoding.

use xxhash_rust::xxh3::xxh3_64;

/// Longest name, in characters (each is one byte).
pub const MAX_NAME_BYTES: usize = 64;
/// Longest key, in bytes of UTF-8.
pub const MAX_KEY_BYTES: usize = 1024;
/// The end of the sentence "`name` must be …".
pub const NAME_EXPECTS: &str = "1 to 64 characters of A-Z a-z 0-9 _ . -";
/// The end of the sentence "`key` must be …".
pub const KEY_EXPECTS: &str = "a string of at most 1024 bytes in UTF-8";

const MAX_IDENTITY_BYTES: usize = MAX_NAME_BYTES + 1 + MAX_KEY_BYTES;

/// Whether `name` is legal for a limit: see [`NAME_EXPECTS`].
#[must_use]
pub fn is_name(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(legal)
}

/// Calls `read` with the identity's bytes, and returns its result; `None` if name or key are too long.
///
/// ```
/// use tidegate_core::with_identity;
/// let text = with_identity("chat", Some(b"user:1"), |bytes| bytes.to_vec());
/// assert_eq!(text.as_deref(), Some(b"chat:user:1".as_slice()));
/// ```
pub fn with_identity<R>(name: impl AsRef<[u8]>, key: Option<&[u8]>, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let mut bytes = [0; MAX_IDENTITY_BYTES];
    let mut length = 0;
    let mut push = |part: &[u8]| {
        let end = length + part.len();
        bytes.get_mut(length..end)?.copy_from_slice(part);
        length = end;
        Some(())
    };
    push(name.as_ref())?;
    if let Some(key) = key {
        push(b":")?;
        push(key)?;
    }
    bytes.get(..length).map(read)
}

/// The window grid of a key whose policy has no `start`: `xxh3_64(identity) mod period`, ms. So the windows of
/// different keys do not all begin at the same time, and a key keeps its grid when its state is dropped. 0 if
/// [`with_identity`] returns `None`, because the name or the key is too long.
#[must_use]
#[inline(never)]
pub fn default_start(name: impl AsRef<[u8]>, key: Option<&[u8]>, period: f64) -> f64 {
    let hash = with_identity(name, key, xxh3_64).unwrap_or(0);
    // Exact: a period is an integer up to 2^40.
    hash.checked_rem(period as u64).unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn a_name_has_1_to_64_characters_and_no_delimiter() {
        for name in ["a", "A-z_0.9", "__proto__", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a:b", "a/b", "a b", "é", &"x".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn an_identity_is_the_name_then_the_key() {
        let text = |key| with_identity("chat", key, <[u8]>::to_vec).unwrap();
        assert_eq!(text(None), b"chat");
        assert_eq!(text(Some(b"")), b"chat:");
        assert_eq!(text(Some(b"user:1")), b"chat:user:1");
    }

    #[test]
    fn the_longest_identity_fits_and_a_longer_key_does_not() {
        let length = |key| with_identity("x".repeat(64), Some(&[b'k'; 2000][..key]), |bytes| bytes.len());
        assert_eq!(length(MAX_KEY_BYTES), Some(MAX_IDENTITY_BYTES));
        assert_eq!(length(MAX_KEY_BYTES + 1), None);
    }

    #[test]
    fn the_default_start_is_within_the_period() {
        for period in [1.0, 60_000.0, 1_099_511_627_776.0] {
            assert!((0.0..period).contains(&default_start("freeTrial", Some(b"user"), period)));
        }
        assert_ne!(default_start("a", None, 1e9), default_start("a", Some(b""), 1e9));
    }
}
