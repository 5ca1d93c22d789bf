//! A call on one state, and calls on several that take from all or from none.

use crate::limit::{Digest, Limit};
use alloc::vec::Vec;
use tidegate_core::{Bucket, Decision, InputError, MAX_NOW_MS, Outcome, State, check_count, check_for, check_now};

/// The operation of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Takes tokens, or denies.
    Take,
    /// Decides as `Take` does, and takes nothing.
    Check,
    /// Gives unused tokens back.
    Give,
    /// Takes tokens that are already spent.
    Charge,
    /// Blocks the key.
    Block,
}

/// One call. Its fields are not checked again: a count below 0 would add tokens, and NaN would be granted. For numbers from
/// outside, use [`Call::new`].
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The operation.
    pub op: Op,
    /// The clock, integer ms since the Unix epoch.
    pub now: f64,
    /// Tokens; of a block, its length in ms.
    pub count: f64,
    /// Whether tokens may be owed. Only `Take` and `Check` read it.
    pub reserve: bool,
}

impl Call {
    /// A call with checked numbers, without `reserve`. A fraction of `now` is floored.
    ///
    /// ```
    /// use tidegate_table::{Call, Op};
    ///
    /// let error = Call::new(Op::Take, 1_700_000_000_000.0, -5.0).unwrap_err();
    /// assert_eq!(error.to_string(), "`count` must be a finite number of tokens from 0 to 1099511627776; got -5");
    /// ```
    ///
    /// # Errors
    /// The first number that is out of its range: `count` is 0 to 2^40 tokens, or the length of a block, integer ms from 1
    /// to 2^40; `now` is 0 to 2^52.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline)]
    pub fn new(op: Op, now: f64, count: f64) -> Result<Call, InputError> {
        let count = if op == Op::Block { check_for(count) } else { check_count(count) }?;
        Ok(Call { op, now: check_now(now)?, count, reserve: false })
    }

    /// Takes one token at `now`, ms since the Unix epoch. A fraction is floored, a reading beyond 0 to 2^52 counts as the
    /// nearest of these, and NaN as 0; [`new`](Call::new) rejects both.
    #[must_use]
    pub fn at(now: f64) -> Call {
        let nearest = if now > 0.0 { MAX_NOW_MS } else { 0.0 };
        Call { op: Op::Take, now: check_now(now).unwrap_or(nearest), count: 1.0, reserve: false }
    }

    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    pub(crate) fn apply(&self, bucket: &Bucket, state: Option<State>) -> Outcome {
        if self.op == Op::Take {
            return bucket.take(state, self.now, self.count, self.reserve);
        }
        self.apply_other(bucket, state)
    }

    /// Evaluates the call on a state that the caller keeps. It stores nothing.
    ///
    /// This is `apply` as one function, for callers if an inlined copy is not worth its size.
    #[inline(never)]
    #[must_use]
    pub fn on(&self, bucket: &Bucket, state: Option<State>) -> Outcome {
        self.apply(bucket, state)
    }

    #[inline(never)]
    fn apply_other(&self, bucket: &Bucket, state: Option<State>) -> Outcome {
        match self.op {
            Op::Take | Op::Check => {
                Outcome { decision: bucket.check(state, self.now, self.count, self.reserve), write: None }
            }
            Op::Give => bucket.give(state, self.now, self.count),
            Op::Charge => bucket.charge(state, self.now, self.count),
            Op::Block => bucket.block(state, self.now, self.count),
        }
    }
}

/// The stored state of a digest, or its absence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stored {
    /// A state.
    Present(State),
    /// No state, and the latest instant of the dropped states: see [`Bucket::absent`].
    Absent {
        /// ms since the Unix epoch; 0 or less if none was dropped.
        fresh_from: f64,
    },
}

impl Stored {
    /// The state that a call at `now` starts from; `None` for a fresh key.
    #[must_use]
    #[inline]
    pub fn state(self, bucket: &Bucket, now: f64) -> Option<State> {
        match self {
            Stored::Present(state) => Some(state),
            Stored::Absent { fresh_from } => bucket.absent(fresh_from, now),
        }
    }
}

/// States by digest, read while no other call writes them.
pub trait States {
    /// Why a state cannot be read; [`Infallible`](core::convert::Infallible) in memory.
    type Error;
    /// Reads a state.
    ///
    /// # Errors
    /// If the state cannot be read.
    fn read(&self, digest: Digest) -> Result<Stored, Self::Error>;
}

/// A state that a planned call stores.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Digest of the state.
    pub digest: Digest,
    /// The new state.
    pub state: State,
    /// First ms at which the state is full, so that it may be dropped; since the Unix epoch.
    pub full_at: f64,
}

/// The decision on one call, and the change to store.
///
/// # Errors
/// The error of `states`.
pub fn plan<S: States>(
    states: &S,
    limit: &Limit,
    key: Option<&[u8]>,
    call: &Call,
) -> Result<(Decision, Option<Change>), S::Error> {
    plan_one(states, limit.digest(key), &limit.bucket(key), call)
}

fn plan_one<S: States>(
    states: &S,
    digest: Digest,
    bucket: &Bucket,
    call: &Call,
) -> Result<(Decision, Option<Change>), S::Error> {
    let Outcome { decision, write } = call.on(bucket, states.read(digest)?.state(bucket, call.now));
    // `reset_at` is the time at which the new state is full.
    Ok((decision, write.map(|state| Change { digest, state, full_at: decision.reset_at })))
}

/// One limit and key of a `take_all`.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub(crate) digest: Digest,
    bucket: Bucket,
    count: f64,
    reserve: bool,
}

impl Member {
    /// A member that takes `count` tokens of the limit; with `reserve`, tokens may be owed. `count` is not checked again, and
    /// one below 0 would add tokens: for a number from outside, use [`check_count`].
    #[must_use]
    pub fn new(limit: &Limit, key: Option<&[u8]>, count: f64, reserve: bool) -> Member {
        Member { digest: limit.digest(key), bucket: limit.bucket(key), count, reserve }
    }
}

/// The decision on all members of a `take_all`.
#[derive(Clone, Debug)]
pub struct All {
    /// Whether all were granted.
    pub ok: bool,
    /// ms since the Unix epoch: the latest `retry_at` of the denials or, if all are granted, of the reservations.
    /// `None` if a denial has none.
    pub retry_at: Option<f64>,
    /// One decision per member. If `ok` is false nothing was taken, and each is that of a check.
    pub decisions: Vec<Decision>,
}

/// The decision on all members, and the changes to store: none if one denies. Members on one state take the sum of
/// their counts, and each decision is on the sum so far.
///
/// # Errors
/// The first error of `states`.
#[inline(never)]
pub fn plan_all<S: States>(states: &S, members: &[Member], now: f64) -> Result<(All, Vec<Change>), S::Error> {
    let mut decisions: Vec<Decision> = Vec::with_capacity(members.len());
    let mut changes: Vec<Change> = Vec::new();
    for (i, member) in members.iter().enumerate() {
        let mut count = 0.0;
        for other in members.iter().take(i + 1) {
            if other.digest == member.digest {
                count += other.count;
            }
        }
        let call = Call { op: Op::Take, now, count, reserve: member.reserve };
        let (decision, change) = plan_one(states, member.digest, &member.bucket, &call)?;
        decisions.push(decision);
        // A later change of the same state is written later, and includes the earlier one.
        changes.extend(change);
    }
    let ok = decisions.iter().all(|decision| decision.ok);
    if !ok {
        changes.clear();
    }
    Ok((All { ok, retry_at: latest(ok, &decisions), decisions }, changes))
}

/// The latest time of the denials; if there are none, of the grants.
fn latest(ok: bool, decisions: &[Decision]) -> Option<f64> {
    let mut latest: Option<f64> = None;
    for decision in decisions {
        match decision.retry_at {
            Some(at) if decision.ok == ok && latest.is_none_or(|latest| at > latest) => latest = Some(at),
            None if !decision.ok => return None,
            _ => {}
        }
    }
    latest
}
