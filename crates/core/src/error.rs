//! The only error of the algebra: a number that is out of range.

use crate::bounds::Field;
use crate::number::JsNumber;
use core::fmt;

/// A number out of its range. Its text names the field, the rule and the value:
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
    /// The field.
    pub field: Field,
    /// The value.
    pub value: f64,
}

impl PartialEq for InputError {
    fn eq(&self, other: &Self) -> bool {
        self.field == other.field && self.value.to_bits() == other.value.to_bits()
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = self.field.bound();
        write!(f, "`{}` must be {}; got {}", bound.name, bound.expects, JsNumber(self.value))
    }
}

impl core::error::Error for InputError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_equal_by_field_and_by_the_bits_of_the_value() {
        let error = |field, value| InputError { field, value };
        assert_eq!(error(Field::Count, f64::NAN), error(Field::Count, f64::NAN));
        assert_ne!(error(Field::Count, -1.0), error(Field::Now, -1.0));
        assert_ne!(error(Field::Count, -1.0), error(Field::Count, -2.0));
        assert_ne!(error(Field::Now, 0.0), error(Field::Now, -0.0));
    }
}
