//! An entry: a state, the 128 bits of its digest, and the time at which the state is full, in 32 bytes.
//!
//! `ts` is integer ms between -2^40 and 2^52 + one hour, so 53 bits hold it exactly. The other 11 bits of that word
//! hold the lowest bits of the digest. Their place in the digest's word holds the time from `ts` to `full_at`, rounded
//! up by at most 1/32, so an entry can be dropped without its policy. That time takes longest to compute, so it is in a
//! word that the next call on the key does not wait for.

use crate::limit::Digest;
use tidegate_core::State;

/// Bits of the time to full: 6 of exponent, 5 of fraction. As many bits of the digest are in the word of `ts`.
const FULL_BITS: u32 = 11;
const FULL_MASK: u64 = (1 << FULL_BITS) - 1;
const FRACTION_BITS: u32 = 5;
const FRACTIONS: u64 = 1 << FRACTION_BITS;
/// Keeps the packed time above 0 for every `ts` there is (a window can begin up to one period before 0 UTC).
const BIAS: f64 = 1_099_511_627_777.0;

/// The content of one place of the table; all zeros if it is vacant.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct Entry {
    high: u64,
    low_and_full: u64,
    value: f64,
    time: u64,
}

impl Entry {
    #[inline]
    pub(crate) fn new(digest: Digest, state: State, full_at: f64) -> Entry {
        let mut entry = Entry { high: digest.high, low_and_full: digest.low, value: 0.0, time: digest.low & FULL_MASK };
        entry.set(state, full_at);
        entry
    }

    #[inline]
    pub(crate) fn set(&mut self, state: State, full_at: f64) {
        self.value = state.value();
        self.time = ((state.ts() + BIAS) as i64 as u64) << FULL_BITS | self.time & FULL_MASK;
        self.low_and_full = self.low_and_full & !FULL_MASK | round_up((full_at - state.ts()) as i64 as u64);
    }

    #[inline]
    pub(crate) fn is_vacant(&self) -> bool {
        self.time == 0
    }

    /// The half of the digest that orders a segment.
    #[inline]
    pub(crate) fn high(&self) -> u64 {
        self.high
    }

    #[inline]
    pub(crate) fn digest(&self) -> Digest {
        Digest { high: self.high, low: self.low_and_full & !FULL_MASK | self.time & FULL_MASK }
    }

    #[inline]
    fn ts(&self) -> f64 {
        (self.time >> FULL_BITS) as i64 as f64 - BIAS
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        State::new_unchecked(self.value, self.ts())
    }

    /// Whether a table could have written it.
    pub(crate) fn is_sound(&self) -> bool {
        !self.is_vacant() && State::new(self.value, self.ts()).is_ok()
    }

    /// When the state is full, ms since the Unix epoch: exact below 32 ms after `ts`, otherwise late by up to 1/32 of
    /// that time, never early.
    #[inline]
    pub(crate) fn full_at(&self) -> f64 {
        self.ts() + expand(self.low_and_full & FULL_MASK) as i64 as f64
    }

    /// The four words of a dump.
    pub(crate) fn to_words(self) -> [u64; 4] {
        [self.high, self.low_and_full, self.value.to_bits(), self.time]
    }

    pub(crate) fn from_words([high, low_and_full, value, time]: [u64; 4]) -> Entry {
        Entry { high, low_and_full, value: f64::from_bits(value), time }
    }
}

/// A duration in ms as exponent and fraction, rounded up.
#[inline]
fn round_up(ms: u64) -> u64 {
    if ms < FRACTIONS {
        return ms;
    }
    let shift = ms.ilog2() - FRACTION_BITS;
    let code = (u64::from(shift) << FRACTION_BITS) + (ms >> shift);
    code + u64::from(ms & ((1 << shift) - 1) != 0)
}

#[inline]
fn expand(code: u64) -> u64 {
    match code >> FRACTION_BITS {
        0 => code,
        exponent => (FRACTIONS + (code & (FRACTIONS - 1))) << (exponent - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_is_rounded_up_by_at_most_one_thirty_second_of_itself(bits in 0u32..53, low: u64) {
            let ms = (1u64 << bits) + (low & ((1 << bits) - 1));
            let back = expand(round_up(ms));
            prop_assert!(round_up(ms) < 1 << FULL_BITS);
            prop_assert!(back >= ms && back - ms <= ms / 32, "{ms} {back}");
            prop_assert_eq!(expand(round_up(back)), back);
        }

        #[test]
        fn a_state_comes_back_to_the_bit(value: f64, ts in -(1i64 << 40)..(1 << 52) + 3_600_000, after in 0u64..1 << 52, high: u64, low: u64) {
            prop_assume!(value.is_finite());
            let state = State::new(value, ts as f64).unwrap();
            let digest = Digest { high, low };
            let mut entry = Entry::new(digest, State::new(1.0, 5.0).unwrap(), 6.0);
            entry.set(state, ts as f64 + after as f64);
            prop_assert_eq!(entry.digest(), digest);
            prop_assert!(!entry.is_vacant());
            let back = entry.state();
            prop_assert_eq!((back.value().to_bits(), back.ts()), (value.to_bits(), ts as f64));
            prop_assert!(entry.full_at() >= ts as f64 + after as f64);
            let copy = Entry::from_words(entry.to_words());
            prop_assert_eq!(copy.to_words(), entry.to_words());
        }
    }
}
