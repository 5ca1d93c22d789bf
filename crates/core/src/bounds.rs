//! One row for each number that a caller passes. The check, the error, the documentation and the tests read the row;
//! the JavaScript package's table is generated from it.

use crate::error::InputError;
use crate::number::floor;

/// A number that a caller passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Field {
    /// Tokens added per period.
    Rate = 0,
    /// Length of the period, ms.
    Period = 1,
    /// Most tokens that accumulate.
    Capacity = 2,
    /// Most tokens that may be owed.
    MaxReserved = 3,
    /// Offset of the window grid from 0 UTC, ms; or [`FIRST_REQUEST`].
    Start = 4,
    /// Independent parts that share the limit.
    Shards = 5,
    /// Tokens that a call takes, gives or charges.
    Count = 6,
    /// The clock, ms since the Unix epoch.
    Now = 7,
    /// `value` of a state: tokens.
    Value = 8,
    /// `ts` of a state, ms since the Unix epoch.
    Ts = 9,
    /// Length of a block, ms.
    For = 10,
}

/// The name and the range of one field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Bound {
    /// The field's name in the public API.
    pub name: &'static str,
    /// The end of the sentence "`name` must be …".
    pub expects: &'static str,
    /// Least legal number.
    pub min: f64,
    /// Greatest legal number.
    pub max: f64,
    /// Whether `min` itself is out of range.
    pub above_min: bool,
    /// Whether only integers are legal.
    pub integer: bool,
}

/// 2^40: the most tokens, and the longest period in ms. Small enough that sums and products keep their low bits.
const LARGEST: f64 = 1_099_511_627_776.0;
/// 2^52 ms since the Unix epoch, about the year 144,680: the latest clock reading, and the latest instant that is returned.
/// Integer ms up to here are exact, and so are their differences.
pub const MAX_NOW_MS: f64 = 4_503_599_627_370_496.0;

/// As the `start` of a fixed window: each key's window begins at its first request, and the next one at the first
/// request after the key is full again.
pub const FIRST_REQUEST: f64 = f64::INFINITY;

const fn row(name: &'static str, expects: &'static str, min: f64, max: f64, integer: bool) -> Bound {
    Bound { name, expects, min, max, above_min: false, integer }
}

impl Field {
    /// Every field, in the order of its number.
    pub const ALL: &[Field] = &[
        Field::Rate,
        Field::Period,
        Field::Capacity,
        Field::MaxReserved,
        Field::Start,
        Field::Shards,
        Field::Count,
        Field::Now,
        Field::Value,
        Field::Ts,
        Field::For,
    ];

    /// The field's row. A function and not a table, so that a WebAssembly module that shows no message has no text of one.
    #[must_use]
    #[inline(always)]
    pub const fn bound(self) -> Bound {
        match self {
            Field::Rate => Bound {
                above_min: true,
                ..row("rate", "a finite number of tokens above 0 and up to 1099511627776", 0.0, LARGEST, false)
            },
            Field::Period => row("period", "an integer of ms from 1 to 1099511627776", 1.0, LARGEST, true),
            Field::Capacity => {
                row("capacity", "a finite number of tokens from 0 to 1099511627776", 0.0, LARGEST, false)
            }
            Field::MaxReserved => {
                row("maxReserved", "a finite number of tokens from 0 to 1099511627776", 0.0, LARGEST, false)
            }
            Field::Start => row(
                "start",
                "\"first request\", or an integer of ms from -4503599627370496 to 4503599627370496",
                -MAX_NOW_MS,
                MAX_NOW_MS,
                true,
            ),
            Field::Shards => row("shards", "an integer from 1 to 65536", 1.0, 65_536.0, true),
            Field::Count => row("count", "a finite number of tokens from 0 to 1099511627776", 0.0, LARGEST, false),
            Field::Now => {
                row("now", "a number of ms since the Unix epoch from 0 to 4503599627370496", 0.0, MAX_NOW_MS, false)
            }
            Field::Value => row("value", "a finite number of tokens", f64::MIN, f64::MAX, false),
            Field::Ts => row("ts", "a finite number of ms since the Unix epoch", f64::MIN, f64::MAX, false),
            Field::For => row("for", "an integer of ms from 1 to 1099511627776", 1.0, LARGEST, true),
        }
    }

    /// Returns `value`; `-0` becomes `0`.
    ///
    /// # Errors
    /// If it is out of range, NaN, or a fraction where only integers are legal.
    #[cfg_attr(not(feature = "small"), inline)]
    #[cfg_attr(feature = "small", inline(never))]
    pub fn check(self, value: f64) -> Result<f64, InputError> {
        let Bound { min, max, above_min, integer, .. } = self.bound();
        let below = if above_min { value <= min } else { value < min };
        if value.is_nan() || below || value > max || (integer && floor(value) != value) {
            return Err(InputError { field: self, value });
        }
        Ok(value + 0.0)
    }
}

/// Checks a count of tokens: finite, 0 to 2^40.
///
/// # Errors
/// If it is out of range, or NaN.
#[inline]
pub fn check_count(count: f64) -> Result<f64, InputError> {
    Field::Count.check(count)
}

/// Checks the length of a block: integer ms, 1 to 2^40.
///
/// # Errors
/// If it is out of range, NaN, or a fraction.
#[inline]
pub fn check_for(ms: f64) -> Result<f64, InputError> {
    Field::For.check(ms)
}

/// Checks a clock reading: 0 to 2^52 ms since the Unix epoch. A fraction is floored first.
///
/// # Errors
/// If it is out of range, or NaN.
#[inline]
pub fn check_now(now: f64) -> Result<f64, InputError> {
    Field::Now.check(floor(now)).map_err(|error| InputError { value: now, ..error })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::string::ToString;

    #[test]
    fn each_field_is_at_the_index_of_its_number_and_its_sentence_states_its_range() {
        for (i, field) in Field::ALL.iter().enumerate() {
            assert_eq!(*field as usize, i);
            let b = field.bound();
            if b.max < f64::MAX {
                assert!(b.expects.ends_with(&format!(" {}", b.max)), "{}", b.expects);
                let from = if b.above_min { format!("above {}", b.min) } else { format!("from {}", b.min) };
                assert!(b.expects.contains(&from), "{}", b.expects);
            }
            assert_eq!(b.expects.contains("an integer"), b.integer);
        }
    }

    #[test]
    fn every_row_accepts_its_edges_and_rejects_numbers_beyond_them() {
        for field in Field::ALL {
            let b = field.bound();
            assert!(field.check(b.max).is_ok());
            assert_eq!(field.check(b.min).is_ok(), !b.above_min);
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(field.check(bad).is_err(), "{} {bad}", b.name);
            }
            if b.max < f64::MAX {
                assert!(field.check(b.max.next_up()).is_err());
                assert!(field.check(b.min.next_down()).is_err());
                assert_eq!(field.check(b.max - 0.5).is_ok(), !b.integer, "{}", b.name);
            }
        }
        let negative = check_count(-1.0).unwrap_err().to_string();
        assert_eq!(negative, "`count` must be a finite number of tokens from 0 to 1099511627776; got -1");
    }

    #[test]
    fn a_fractional_clock_is_floored_and_minus_zero_becomes_zero() {
        assert_eq!(check_now(7.9), Ok(7.0));
        assert!(check_now(-0.5).is_err());
        assert_eq!(check_now(-0.0).map(f64::to_bits), Ok(0));
        assert_eq!(check_count(-0.0).map(f64::to_bits), Ok(0));
    }
}
