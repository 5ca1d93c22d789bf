//! What a call returns.

use crate::number::{floor, max};
use crate::state::State;

/// Why a denied request has no `retry_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// The count is more than the limit ever holds; with `reserve`, more than it ever lends.
    ExceedsCapacity = 1,
    /// The tokens would be available only after the latest clock reading, [`MAX_NOW_MS`](crate::MAX_NOW_MS).
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

/// The decision on one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Whether the call is granted: now, or at `retry_at` if `reserved` is set.
    pub ok: bool,
    /// Tokens after the call; tokens now if it is denied. 0 if the count can never be granted, since no state is
    /// read then.
    pub value: f64,
    /// The `ts` of `value`, ms since the Unix epoch. The two determine the tokens at any later instant.
    pub ts: f64,
    /// ms since the Unix epoch, integer. Denied: the first ms at which the same request would be granted. Reserved: the
    /// first ms at which its debt is paid. `None` if the call is granted now, and if there is no such time.
    pub retry_at: Option<f64>,
    /// The first integer ms at which the limit is full if nothing more is taken.
    pub reset_at: f64,
    /// Whether the grant is a reservation: its tokens are taken, and it is to run at `retry_at`.
    pub reserved: bool,
    /// Why a denial has no `retry_at`.
    pub reason: Option<Reason>,
}

impl Decision {
    /// Whole tokens available: `value` rounded down, at least 0.
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

/// A decision, and the state to store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The decision.
    pub decision: Decision,
    /// The new state. `None`: leave the stored state unchanged.
    pub write: Option<State>,
}
