//! The two numbers.

use crate::bounds::{Bound, Field};
use crate::error::InputError;

/// A limit on one key: nothing else is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    pub(crate) value: f64,
    pub(crate) ts: f64,
}

impl State {
    /// A state from its two numbers; both must be finite.
    pub fn new(value: f64, ts: f64) -> Result<State, InputError> {
        // Not what `check` returns: a state keeps its bits, those of -0 too.
        Bound::of(Field::Value).check(value)?;
        Bound::of(Field::Ts).check(ts)?;
        Ok(State { value, ts })
    }

    /// A state from the numbers of another: they are not checked again. For other numbers, use [`State::new`].
    #[must_use]
    #[inline]
    pub const fn from_state(value: f64, ts: f64) -> State {
        State { value, ts }
    }

    /// Tokens at `ts`; negative while tokens are owed.
    #[must_use]
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Integer ms since the Unix epoch. Token bucket: when `value` was computed. Fixed window: the start of the window
    /// that `value` belongs to.
    #[must_use]
    #[inline]
    pub fn ts(&self) -> f64 {
        self.ts
    }
}
