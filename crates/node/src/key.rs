//! Converts JavaScript strings to the bytes that the table hashes.

use tidegate_core::MAX_KEY_BYTES;

/// Appends a key's UTF-16 units as generalized UTF-8, so that lone surrogates stay distinct; `None` if it exceeds the
/// longest key.
pub(crate) fn append(units: &[u16], bytes: &mut Vec<u8>) -> Option<()> {
    let from = bytes.len();
    if units.iter().fold(0, |seen, unit| seen | unit) < 128 {
        bytes.extend(units.iter().map(|unit| *unit as u8));
    } else {
        append_encoded(units, bytes);
    }
    (bytes.len() - from <= MAX_KEY_BYTES).then_some(())
}

#[cold]
fn append_encoded(units: &[u16], bytes: &mut Vec<u8>) {
    for character in char::decode_utf16(units.iter().copied()) {
        match character {
            Ok(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let unit = lone.unpaired_surrogate();
                bytes.extend([0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &[u16]) -> Option<Vec<u8>> {
        let mut bytes = b"before".to_vec();
        append(text, &mut bytes).map(|()| bytes.split_off(6))
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
