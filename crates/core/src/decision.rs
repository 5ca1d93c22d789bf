//! What a call returns.

use crate::number::{floor, max};
use crate::state::State;

/// Why a request is denied without a time to come back at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The count is more than the limit ever holds (with `reserve`: than it ever lends).
    ExceedsCapacity = 1,
    /// The tokens would not be there before the clock's end, [`MAX_NOW_MS`](crate::MAX_NOW_MS).
    ExceedsClock = 2,
}

impl Reason {
    /// The reason as the public API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::ExceedsCapacity => "exceeds capacity",
            Reason::ExceedsClock => "exceeds clock",
        }
    }
}

/// The answer to one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Granted, now or (where `reserved`) at `retry_at`.
    pub ok: bool,
    /// Tokens after the call; where it was denied, tokens now. 0 where the count can never be granted: nothing is
    /// read then.
    pub value: f64,
    /// The `ts` that belongs to `value`: the two project any later instant.
    pub ts: f64,
    /// Denied: least whole ms at which the same request would be granted. Reserved: least whole ms at which it has been
    /// paid for. Absent where granted now, and where there is no such time.
    pub retry_at: Option<f64>,
    /// Least whole ms at which the limit is full, if nothing more is taken.
    pub reset_at: f64,
    /// Granted for later: paid for, to be run at `retry_at`.
    pub reserved: bool,
    /// Why there is no time to come back at.
    pub reason: Option<Reason>,
}

impl Decision {
    /// Whole tokens that are there: `value` rounded down, at least 0.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> f64 {
        max(floor(self.value), 0.0)
    }

    /// A request that no wait would help, decided before any state is read.
    pub(crate) fn never(now: f64) -> Decision {
        Decision {
            ok: false,
            value: 0.0,
            ts: now,
            retry_at: None,
            reset_at: now,
            reserved: false,
            reason: Some(Reason::ExceedsCapacity),
        }
    }
}

/// A decision, and the state to keep where one is to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The answer.
    pub decision: Decision,
    /// The new state. `None`: leave what is stored as it is, to the bit.
    pub write: Option<State>,
}
