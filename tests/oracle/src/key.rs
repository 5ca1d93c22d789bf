//! Keys as JavaScript has them: sequences of UTF-16 code units, lone surrogates included.

use xxhash_rust::xxh3::xxh3_64;

/// The code units of a text.
#[must_use]
pub fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// Generalized UTF-8: a lone surrogate becomes the three bytes that its number would be.
#[must_use]
pub fn bytes(key: &[u16]) -> Vec<u8> {
    let mut out = Vec::new();
    for unit in char::decode_utf16(key.iter().copied()) {
        match unit {
            Ok(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let u = lone.unpaired_surrogate();
                out.extend([0xe0 | (u >> 12) as u8, 0x80 | ((u >> 6) & 0x3f) as u8, 0x80 | (u & 0x3f) as u8]);
            }
        }
    }
    out
}

/// `xxh3_64(identity without shard) mod period`, in ms.
#[must_use]
pub fn default_start(name: &str, key: Option<&[u16]>, period: f64) -> f64 {
    let mut identity = name.as_bytes().to_vec();
    if let Some(key) = key {
        identity.push(b':');
        identity.extend(bytes(key));
    }
    (xxh3_64(&identity) % period as u64) as f64
}

/// A JSON string of ASCII only, so that lone surrogates survive any editor.
#[must_use]
pub fn quoted(key: &[u16]) -> String {
    let mut out = String::from("\"");
    for unit in key {
        match u8::try_from(*unit) {
            Ok(b @ (b'"' | b'\\')) => out.extend(['\\', char::from(b)]),
            Ok(b @ 0x20..=0x7e) => out.push(char::from(b)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_characters_are_utf8_and_lone_surrogates_three_bytes() {
        assert_eq!(bytes(&units("é😀")), "é😀".as_bytes());
        assert_eq!(bytes(&[0xd83d]), [0xed, 0xa0, 0xbd]);
        assert_eq!(bytes(&[0xde00, 0xd83d]), [0xed, 0xb8, 0x80, 0xed, 0xa0, 0xbd]);
        assert_eq!(quoted(&[0x61, 0x22, 0xd83d, 0x0a]), "\"a\\\"\\ud83d\\u000a\"");
    }
}
