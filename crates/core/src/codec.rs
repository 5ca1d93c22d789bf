//! A state as 16 bytes: `value`, then `ts`, little-endian doubles.

use crate::state::State;
use core::fmt;

/// Length of an encoded state.
pub const STATE_BYTES: usize = 16;

/// Bytes that are not a state: the length is wrong, or a number is not finite. A caller must not treat the key as fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptState {
    /// Length of the input, in bytes.
    pub length: usize,
}

impl fmt::Display for CorruptState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == STATE_BYTES {
            f.write_str("a state must be two finite little-endian doubles; got one that is not finite")
        } else {
            write!(f, "a state must be 16 bytes; got {}", self.length)
        }
    }
}

impl core::error::Error for CorruptState {}

/// Writes a state as 16 bytes.
///
/// ```
/// # use tidegate_core::{State, decode, encode};
/// let state = State::new(2.5, 1_000.0).unwrap();
/// assert_eq!(decode(&encode(state)), Ok(state));
/// assert!(decode(&[0; 15]).is_err());
/// ```
#[must_use]
pub fn encode(state: State) -> [u8; STATE_BYTES] {
    (u128::from(state.ts.to_bits()) << 64 | u128::from(state.value.to_bits())).to_le_bytes()
}

/// Reads a state.
///
/// # Errors
/// If the length is not 16 bytes, or a number is not finite.
pub fn decode(bytes: &[u8]) -> Result<State, CorruptState> {
    let corrupt = CorruptState { length: bytes.len() };
    let (value, ts) = bytes.split_first_chunk::<8>().ok_or(corrupt)?;
    let ts: &[u8; 8] = ts.try_into().map_err(|_| corrupt)?;
    State::new(f64::from_le_bytes(*value), f64::from_le_bytes(*ts)).map_err(|_| corrupt)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_bytes_are_value_then_ts_in_little_endian() {
        let state = State { value: 1.0, ts: 2.0 };
        assert_eq!(encode(state), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40]);
    }

    #[test]
    fn wrong_lengths_and_non_finite_numbers_are_corrupt() {
        assert_eq!(decode(&[]), Err(CorruptState { length: 0 }));
        assert_eq!(decode(&[0; 17]), Err(CorruptState { length: 17 }));
        assert_eq!(decode(&[0xff; 16]), Err(CorruptState { length: 16 }));
    }

    #[test]
    fn the_error_names_a_wrong_length_or_a_non_finite_number() {
        let error = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert_eq!(error(&[0; 15]), "a state must be 16 bytes; got 15");
        assert_eq!(error(&[0xff; 16]), "a state must be two finite little-endian doubles; got one that is not finite");
    }
}
