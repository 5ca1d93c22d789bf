//! A stored state, in 32 bytes: the state, the time at which it is full, and a hash of both. Every other row ends with
//! such a hash, too.

use tidegate_core::{State, decode, encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Length of a key, which is a digest, in bytes.
pub(crate) const KEY: usize = 16;
/// Length of a row in bytes: the state, the time at which it is full, and a hash of these and the key.
pub(crate) const ROW: usize = 32;

pub(crate) type Key = [u8; KEY];

fn seal(key: &[u8], body: &[u8]) -> u64 {
    let number = |part: &[u8]| part.try_into().map_or(0, u64::from_le_bytes);
    xxh3_64_with_seed(
        body,
        number(key.get(..8).unwrap_or_default()) ^ number(key.get(8..16).unwrap_or_default()).rotate_left(1),
    )
}

/// A row of `body` and its hash.
pub(crate) fn sealed(key: &[u8], body: &[u8]) -> Vec<u8> {
    [body, &seal(key, body).to_le_bytes()].concat()
}

/// A row without its hash; `None` if that does not match row and key.
pub(crate) fn opened<'r>(key: &[u8], row: &'r [u8]) -> Option<&'r [u8]> {
    let (body, hash) = row.split_last_chunk()?;
    (seal(key, body).to_le_bytes() == *hash).then_some(body)
}

pub(crate) fn write(key: &Key, state: State, full_at: f64) -> [u8; ROW] {
    let mut row = [0; ROW];
    row[..16].copy_from_slice(&encode(state));
    row[16..24].copy_from_slice(&full_at.to_le_bytes());
    let sealed = seal(key, &row[..24]);
    row[24..].copy_from_slice(&sealed.to_le_bytes());
    row
}

/// The state of a row, and the time at which it is full, ms; `None` if the hash does not match row and key.
pub(crate) fn read(key: &[u8], row: &[u8]) -> Option<(State, f64)> {
    let body: &[u8; 24] = opened(key, row)?.try_into().ok()?;
    let (state, full_at) = body.split_at(16);
    Some((decode(state).ok()?, f64::from_le_bytes(full_at.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_back_and_one_with_a_flipped_bit_or_of_another_key_does_not() {
        let key = [7; KEY];
        let state = State::new(-2.5, 1_735_689_600_000.0).expect("a state");
        let row = write(&key, state, 1e12);
        assert_eq!(read(&key, &row), Some((state, 1e12)));
        for bit in 0..ROW * 8 {
            let mut flipped = row;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&key, &flipped), None, "bit {bit}");
        }
        for byte in 0..KEY {
            let mut other = key;
            other[byte] ^= 1;
            assert_eq!(read(&other, &row), None, "byte {byte} of the key");
        }
        assert_eq!(read(&key, &row[..31]), None);
        let key: Key = std::array::from_fn(|byte| byte as u8);
        let mut halves = key;
        halves.rotate_left(KEY / 2);
        assert_eq!(read(&halves, &write(&key, state, 1e12)), None, "a key with its halves swapped");
    }
}
