//! The state of a limit on one key.

use crate::bounds::Field;
use crate::error::InputError;

/// All that is stored of a limit on one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    pub(crate) value: f64,
    pub(crate) ts: f64,
}

impl State {
    /// A state from its two numbers.
    ///
    /// # Errors
    /// If one is not finite.
    pub fn new(value: f64, ts: f64) -> Result<State, InputError> {
        // `check` would turn -0 into 0; a state keeps its bits.
        Field::Value.check(value)?;
        Field::Ts.check(ts)?;
        Ok(State { value, ts })
    }

    /// A state from the numbers of an existing state, unchecked. For other numbers, use [`State::new`].
    #[must_use]
    #[inline]
    pub const fn new_unchecked(value: f64, ts: f64) -> State {
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
