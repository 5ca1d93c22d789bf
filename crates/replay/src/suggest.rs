//! A policy for a budget of denials.
//!
//! The tightest policy within the budget: the one under which a key can take the fewest tokens in one period, which is
//! `capacity + rate`. Rates are round integers; the capacity is the least for the rate.
//!
//! A long log is searched by the requests of some of its keys, and the capacity is then settled on all of them. So what
//! is reported of the proposal is exact, and only the choice of its rate is by sample.

use crate::capacity::count_denied;
use crate::decider::{Decider, Tables};
use crate::error::Error;
use crate::report::Suggestion;
use crate::search::least_near;
use crate::subject::Subject;
use crate::trace::Trace;
use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use tidegate_core::{Bucket, Field, Policy, State, default_start};

/// Most requests that the search uses.
const SAMPLE: u64 = 100_000;
/// Candidate rates within a power of ten.
const ROUND: [f64; 9] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5];

/// The tightest policy that denies at most `budget` (a share) of the requests; none if no legal one does.
pub(crate) fn propose(
    trace: &mut Trace,
    subject: &Subject,
    budget: f64,
    tables: Tables,
) -> Result<Option<Suggestion>, Error> {
    let sample = Sample::of(trace, subject)?;
    let Some((rate, guess)) = sample.tightest(subject, budget) else { return Ok(None) };
    let allowed = allowed(budget, trace.requests);
    let most = Field::Capacity.bound().max;
    // Of the last capacity that holds, which is the one that the search returns.
    let mut denied = 0;
    let capacity = least_near(guess, most, |capacity| -> Result<bool, Error> {
        let Some(policy) = subject.with(rate, capacity) else { return Ok(false) };
        let count = count_denied(trace, &mut Decider::alone(subject, policy, tables), allowed, |_| true)?;
        let holds = count <= allowed;
        if holds {
            denied = count;
        }
        Ok(holds)
    })?;
    let period = subject.policy.period();
    Ok(capacity.map(|capacity| Suggestion { budget, rate, period, capacity, denied }))
}

/// The most denials that are no larger share. The product may be rounded to below an integer: 0.29 of 100 is 28.999….
fn allowed(budget: f64, requests: u64) -> u64 {
    let most = (budget * requests as f64).floor() as u64;
    most + u64::from((most + 1) as f64 / requests as f64 <= budget)
}

/// Requests in memory, their keys numbered.
struct Sample {
    requests: Vec<(usize, f64, f64)>,
    starts: Vec<f64>,
}

impl Sample {
    fn of(trace: &mut Trace, subject: &Subject) -> Result<Sample, Error> {
        let share = SAMPLE as f64 / trace.requests as f64;
        let some = Sample::within(trace, subject, share)?;
        // All requests may be of keys outside of the sample.
        if some.requests.is_empty() { Sample::within(trace, subject, 1.0) } else { Ok(some) }
    }

    /// The requests of a sample of the keys, limited even if one key has very many.
    fn within(trace: &mut Trace, subject: &Subject, share: f64) -> Result<Sample, Error> {
        let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut sample = Sample { requests: Vec::new(), starts: Vec::new() };
        trace.each(|record| {
            let key = record.key(subject.scope.key);
            let bytes = key.unwrap_or_default();
            let count = record.counts[subject.number];
            if !count.is_nan() && (share >= 1.0 || drawn(bytes) < share) {
                let place = numbers.get(bytes).copied().unwrap_or_else(|| {
                    let start = default_start(&subject.name, key, subject.policy.period());
                    sample.starts.push(start);
                    numbers.insert(bytes.to_vec(), sample.starts.len() - 1);
                    sample.starts.len() - 1
                });
                sample.requests.push((place, record.now, count));
            }
            let enough = sample.requests.len() as u64 >= 4 * SAMPLE;
            if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(sample)
    }

    /// The rate and the capacity with the least sum that deny no more than the budget.
    fn tightest(&self, subject: &Subject, budget: f64) -> Option<(f64, f64)> {
        let allowed = allowed(budget, self.requests.len() as u64);
        let most = Field::Capacity.bound().max;
        let mut best: Option<(f64, f64)> = None;
        let mut guess = 1.0;
        for rate in rates() {
            // A capacity is at least 0.
            if best.is_some_and(|(rate_, capacity)| rate >= rate_ + capacity) {
                break;
            }
            let holds = |capacity| -> Result<bool, Infallible> {
                Ok(subject
                    .with(rate, capacity)
                    .is_some_and(|policy| self.denies(&policy, subject.reserve, allowed) <= allowed))
            };
            let Ok(found) = least_near(guess, most, holds);
            let Some(capacity) = found else { continue };
            guess = capacity;
            if best.is_none_or(|(rate_, capacity_)| rate + capacity < rate_ + capacity_) {
                best = Some((rate, capacity));
            }
        }
        best
    }

    fn denies(&self, policy: &Policy, reserve: bool, allowed: u64) -> u64 {
        let buckets: Vec<Bucket> = self.starts.iter().map(|start| policy.bucket(*start)).collect();
        let mut states: Vec<Option<State>> = vec![None; buckets.len()];
        let mut denied = 0;
        for (key, now, count) in &self.requests {
            let (bucket, state) = (&buckets[*key], &mut states[*key]);
            let outcome = bucket.take(*state, *now, *count, reserve);
            *state = outcome.write.or(*state);
            denied += u64::from(!outcome.decision.ok);
            if denied > allowed {
                break;
            }
        }
        denied
    }
}

/// Candidate rates: round integers, ascending.
fn rates() -> impl Iterator<Item = f64> {
    let all = (0..13).flat_map(|power| ROUND.map(|round| round * 10f64.powi(power)));
    all.filter(|rate| rate.fract() == 0.0)
}

/// A number in [0, 1) that depends only on the key.
fn drawn(key: &[u8]) -> f64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
