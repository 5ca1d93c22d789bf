//! Several limits, all or nothing.

use crate::decision::Outcome;
use crate::number::max;
use crate::rule::Rule;
use crate::state::State;

/// One limit of a [`take_all`].
///
/// Where two requests are about the same state, give the later one the sum of both counts: what they ask for together.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The limit.
    pub rule: Rule,
    /// What is stored.
    pub state: Option<State>,
    /// Tokens to take, 0 to 2^40.
    pub count: f64,
    /// Whether tokens may be owed.
    pub reserve: bool,
}

/// Takes from every limit, or from none. Writes one outcome per request to `outcomes`, and returns whether all were
/// granted and the latest of the times: of those that deny, or where all are granted, of those that are reserved.
///
/// Where one denies, no outcome has anything to write, and the others tell what a check would. The time is absent
/// where one of those that deny has none.
pub fn take_all(requests: &[Request], now: f64, outcomes: &mut [Outcome]) -> (bool, Option<f64>) {
    for (request, outcome) in requests.iter().zip(outcomes.iter_mut()) {
        *outcome = request.rule.take(request.state, now, request.count, request.reserve);
    }
    let ok = outcomes.iter().all(|outcome| outcome.decision.ok);
    if !ok {
        for outcome in outcomes.iter_mut() {
            outcome.write = None;
        }
    }
    (ok, latest(ok, outcomes.iter().map(|outcome| (outcome.decision.ok, outcome.decision.retry_at))))
}

/// The latest time of the decisions that settle the whole: the denials, or where there are none, the grants.
pub fn latest(ok: bool, decisions: impl Iterator<Item = (bool, Option<f64>)>) -> Option<f64> {
    let mut at = None;
    for (_, retry_at) in decisions.filter(|(granted, _)| *granted == ok) {
        match (ok, retry_at) {
            (_, Some(time)) => at = Some(at.map_or(time, |at| max(at, time))),
            (false, None) => return None,
            (true, None) => {}
        }
    }
    at
}
