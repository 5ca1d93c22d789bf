//! Functions on doubles that `core` lacks: floor, ceiling, and JavaScript's number format.

use core::fmt::{self, Write as _};

/// 2^52: every double from here up is an integer.
#[cfg(not(all(feature = "std", target_family = "wasm")))]
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// The greatest integer that is at most `x`.
#[inline]
pub(crate) fn floor(x: f64) -> f64 {
    #[cfg(all(feature = "std", target_family = "wasm"))]
    return x.floor(); // one instruction on this target
    #[cfg(not(all(feature = "std", target_family = "wasm")))]
    {
        // NaN and integers fall through unchanged.
        if x.abs() < WHOLE {
            let cut = x as i64 as f64;
            if cut > x { cut - 1.0 } else { cut }
        } else {
            x
        }
    }
}

/// The least integer that is at least `x`.
#[inline]
pub(crate) fn ceil(x: f64) -> f64 {
    0.0 - floor(-x) // never -0
}

/// The lesser of two numbers; the second if they are equal. Every implementation of the algebra (Lua, SQL) uses this
/// order, so that the sign of a zero is the same everywhere.
#[inline]
pub(crate) fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The greater of two numbers; the second if they are equal.
#[inline]
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Formats a double as JavaScript does, so that an error has the same text on every host. `core::fmt` already writes
/// the shortest digits; only the exponent differs.
pub struct JsNumber(pub f64);

impl fmt::Display for JsNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = self.0;
        let size = x.abs();
        if x == f64::INFINITY {
            f.write_str("Infinity")
        } else if x == f64::NEG_INFINITY {
            f.write_str("-Infinity")
        } else if x == 0.0 {
            f.write_str("0")
        } else if x.is_nan() || (1e-6..1e21).contains(&size) {
            write!(f, "{x}")
        } else if size >= 1.0 {
            write!(WithPlus(f), "{x:e}")
        } else {
            write!(f, "{x:e}")
        }
    }
}

/// Writes `1e+21` if Rust writes `1e21`.
struct WithPlus<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for WithPlus<'_, '_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        match s.split_once('e') {
            Some((digits, exponent)) => write!(self.0, "{digits}e+{exponent}"),
            None => self.0.write_str(s),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn doubles_are_written_as_javascript_writes_them() {
        for (x, text) in [
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e308, "-1.5e+308"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (9007199254740993.0, "9007199254740992"),
        ] {
            assert_eq!(JsNumber(x).to_string(), text);
        }
    }

    #[test]
    fn min_and_max_return_the_second_of_equal_numbers() {
        for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
            assert_eq!(min(a, b).to_bits(), b.to_bits());
            assert_eq!(max(a, b).to_bits(), b.to_bits());
        }
    }

    #[test]
    fn floor_and_ceil_agree_with_the_standard_library() {
        for x in [0.0, 0.5, -0.5, 1.0, -1.0, 1e15 + 0.5, -4503599627370495.5, 4503599627370497.0, 1e300, -1e300] {
            assert_eq!(floor(x), x.floor());
            assert_eq!(ceil(x), x.ceil());
        }
        assert!(floor(f64::NAN).is_nan());
    }
}
