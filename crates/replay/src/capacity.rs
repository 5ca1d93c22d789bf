//! The least capacity that would have denied no request: exact, by replays of the limit itself.
//!
//! In doubles as in exact numbers, the tokens of a larger capacity are never fewer at any request, since sums,
//! quotients and minima of doubles keep their order. So "denies nothing" holds from one capacity on, and the search
//! starts at the deepest debt, which rounding may change a little.

use crate::decider::{Decider, Tables};
use crate::error::Error;
use crate::fields::Record;
use crate::heavy::Heavy;
use crate::search::least_near;
use crate::subject::Subject;
use crate::trace::Trace;
use std::ops::ControlFlow;
use tidegate_core::Field;

/// A capacity in whole tokens.
pub(crate) struct Smallest {
    /// `None` if no legal capacity suffices.
    pub(crate) tokens: Option<f64>,
    /// Whether the capacity is exact: no key was evicted meanwhile.
    pub(crate) exact: bool,
}

/// The least capacity of a limit by itself.
pub(crate) fn smallest(trace: &mut Trace, subject: &Subject, heavy: &Heavy, tables: Tables) -> Result<Smallest, Error> {
    let most = Field::Capacity.bound().max;
    let guess = heavy.deepest.ceil().min(most);
    let mut exact = true;
    let tokens = least_near(guess, most, |capacity| -> Result<bool, Error> {
        let Some(policy) = subject.with(subject.policy.rate(), capacity) else { return Ok(false) };
        let mut decider = Decider::alone(subject, policy, tables);
        // Without reserves, a key that never owed half of the deepest debt is never denied.
        let near = capacity >= guess - 1.0 && !subject.reserve;
        let matters = |record: &Record| !near || heavy.has(record.key(subject.scope.key));
        let denied = count_denied(trace, &mut decider, 0, matters)?;
        exact &= decider.evicted() == 0;
        Ok(denied == 0)
    })?;
    Ok(Smallest { tokens, exact })
}

/// How many of the requests that matter are denied; stops at the first beyond `allowed`.
pub(crate) fn count_denied(
    trace: &mut Trace,
    decider: &mut Decider,
    allowed: u64,
    matters: impl Fn(&Record) -> bool,
) -> Result<u64, Error> {
    let mut denied = 0;
    trace.each(|record| {
        denied += u64::from(matters(record) && !decider.take(record).ok);
        if denied > allowed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(denied)
}
