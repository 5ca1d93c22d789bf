//! The one error of the algebra: a mistake of the caller's, told by field, value and rule.

use crate::bounds::{Bound, Field};
use crate::number::Shown;
use core::fmt;

/// A number out of its range. Its text names the field, the rule and what came:
///
/// ```
/// let error = tidegate_core::check_count(f64::NAN).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`count` must be a finite number of tokens from 0 to 1099511627776; got NaN"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InputError {
    /// Which number it is.
    pub field: Field,
    /// What came.
    pub value: f64,
}

impl PartialEq for InputError {
    fn eq(&self, other: &Self) -> bool {
        self.field == other.field && self.value.to_bits() == other.value.to_bits()
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = Bound::of(self.field);
        write!(f, "`{}` must be {}; got {}", bound.name, bound.expects, Shown(self.value))
    }
}

impl core::error::Error for InputError {}
