//! Converts a JavaScript string to the bytes that the table hashes.

use tidegate_core::MAX_KEY_BYTES;

/// A key's bytes on the stack: generalized UTF-8, so that lone surrogates stay distinct.
pub(crate) struct KeyBytes {
    bytes: [u8; MAX_KEY_BYTES],
    length: usize,
}

impl KeyBytes {
    /// The bytes of these UTF-16 units; `None` where they exceed the longest key.
    #[inline]
    pub(crate) fn of(units: &[u16]) -> Option<KeyBytes> {
        let mut key = KeyBytes { bytes: [0; MAX_KEY_BYTES], length: units.len() };
        let ascii = units.iter().fold(0, |seen, unit| seen | unit) < 128;
        if !ascii {
            return KeyBytes::encoded(units);
        }
        for (byte, unit) in key.bytes.get_mut(..units.len())?.iter_mut().zip(units) {
            *byte = *unit as u8;
        }
        Some(key)
    }

    #[cold]
    fn encoded(units: &[u16]) -> Option<KeyBytes> {
        let mut key = KeyBytes { bytes: [0; MAX_KEY_BYTES], length: 0 };
        for character in char::decode_utf16(units.iter().copied()) {
            match character {
                Ok(character) => key.push(character.encode_utf8(&mut [0; 4]).as_bytes())?,
                Err(lone) => {
                    let unit = lone.unpaired_surrogate();
                    key.push(&[
                        0xe0 | (unit >> 12) as u8,
                        0x80 | (unit >> 6 & 0x3f) as u8,
                        0x80 | (unit & 0x3f) as u8,
                    ])?;
                }
            }
        }
        Some(key)
    }

    fn push(&mut self, part: &[u8]) -> Option<()> {
        let end = self.length + part.len();
        self.bytes.get_mut(self.length..end)?.copy_from_slice(part);
        self.length = end;
        Some(())
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &[u16]) -> Option<Vec<u8>> {
        KeyBytes::of(text).map(|key| key.as_slice().to_vec())
    }

    #[test]
    fn strings_are_utf8_and_lone_surrogates_stay_apart() {
        let units: Vec<u16> = "user:é😀".encode_utf16().collect();
        assert_eq!(bytes(&units), Some("user:é😀".as_bytes().to_vec()));
        assert_eq!(bytes(&[0xd800]), Some(vec![0xed, 0xa0, 0x80]));
        assert_eq!(bytes(&[0xdc00]), Some(vec![0xed, 0xb0, 0x80]));
        assert_eq!(bytes(&[]), Some(vec![]));
    }

    #[test]
    fn a_key_of_more_bytes_than_the_bound_is_refused() {
        assert!(bytes(&[97; MAX_KEY_BYTES]).is_some());
        assert!(bytes(&[97; MAX_KEY_BYTES + 1]).is_none());
        assert!(bytes(&[0xe9; MAX_KEY_BYTES / 2]).is_some());
        assert!(bytes(&[0xe9; MAX_KEY_BYTES / 2 + 1]).is_none());
    }
}
