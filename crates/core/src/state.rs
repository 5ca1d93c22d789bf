//! The two numbers.

use crate::bounds::{Bound, Field};
use crate::error::InputError;

/// All that a limit on one key is: nothing else is ever stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    pub(crate) value: f64,
    pub(crate) ts: f64,
}

impl State {
    /// A state from its two numbers; both must be finite.
    pub fn new(value: f64, ts: f64) -> Result<State, InputError> {
        // Not `check`'s answer: a state keeps its bits, a minus zero included.
        Bound::of(Field::Value).check(value)?;
        Bound::of(Field::Ts).check(ts)?;
        Ok(State { value, ts })
    }

    /// A state whose numbers came out of a state before: they are not checked again. Numbers from outside go through
    /// [`State::new`].
    #[must_use]
    #[inline]
    pub const fn from_state(value: f64, ts: f64) -> State {
        State { value, ts }
    }

    /// Tokens that were there at `ts`; negative while tokens are owed.
    #[must_use]
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Whole ms since the Unix epoch. Token bucket: when `value` was computed. Fixed window: the start of the window
    /// that `value` belongs to.
    #[must_use]
    #[inline]
    pub fn ts(&self) -> f64 {
        self.ts
    }
}
