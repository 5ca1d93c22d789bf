//! What the calls need of a table, and the calls that touch more than one state.

use crate::call::{Call, Member, Op};
use crate::limit::{Digest, Limit};
use alloc::vec::Vec;
use tidegate_core::{Decision, Pool, Rule, State, latest, pick_two, take_better};

/// What a table holds under a digest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stored {
    /// A state.
    Present(State),
    /// None. The latest instant of the states that were dropped: see [`Rule::absent`].
    Absent {
        /// ms since the Unix epoch; 0 or less where none was dropped.
        fresh_from: f64,
    },
}

impl Stored {
    /// The state that a call at `now` starts from; none for a fresh key.
    #[must_use]
    #[inline]
    pub fn state(self, rule: &Rule, now: f64) -> Option<State> {
        match self {
            Stored::Present(state) => Some(state),
            Stored::Absent { fresh_from } => rule.absent(fresh_from, now),
        }
    }
}

/// States by digest, read while no other call writes them.
pub trait Read {
    /// Why a state cannot be read or written; [`Infallible`](core::convert::Infallible) in memory.
    type Error;
    /// What is stored.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn read(&self, digest: Digest) -> Result<Stored, Self::Error>;
}

/// The same, read and written while no other call does either.
pub trait Write: Read {
    /// Keeps the state, which is as good as none from `full_at` on.
    ///
    /// # Errors
    /// Where it cannot be written: then the whole call must come to nothing.
    fn write(&mut self, digest: Digest, state: State, full_at: f64, now: f64) -> Result<(), Self::Error>;
    /// Forgets the state.
    ///
    /// # Errors
    /// As above.
    fn remove(&mut self, digest: Digest) -> Result<(), Self::Error>;
}

/// A state that a planned call stores.
#[derive(Debug)]
pub struct Change {
    digest: Digest,
    state: State,
    full_at: f64,
}

/// Writes what was planned, to the states it was planned on.
///
/// # Errors
/// The first of the table's own.
pub fn carry_out<S: Write>(states: &mut S, changes: &[Change], now: f64) -> Result<(), S::Error> {
    for change in changes {
        states.write(change.digest, change.state, change.full_at, now)?;
    }
    Ok(())
}

/// What `call` on the limit that `digest` stands for would answer; what it would store is added to `changes`.
///
/// # Errors
/// The first of the table's own.
#[inline(never)]
pub fn plan<S: Read>(
    states: &S,
    limit: &Limit,
    key: Option<&[u8]>,
    digest: Digest,
    call: &Call,
    changes: &mut Vec<Change>,
) -> Result<Decision, S::Error> {
    let mut write = |digest, rule: &Rule, state: Option<State>| {
        if let Some(state) = state {
            changes.push(Change { digest, state, full_at: rule.full_at(Some(state), call.now) });
        }
    };
    let policy = limit.policy();
    if policy.shards() == 1 {
        let rule = limit.rule(key);
        let outcome = call.on(&rule, states.read(digest)?.state(&rule, call.now));
        write(digest, &rule, outcome.write);
        return Ok(outcome.decision);
    }
    let start = limit.start(key);
    let rule = policy.shard_rule(start);
    if matches!(call.op, Op::Take | Op::Check) {
        let whole = policy.rule(start);
        if whole.exceeds_capacity(call.count, call.reserve) {
            return Ok(whole.check(None, call.now, call.count, call.reserve));
        }
        let (a, b) = pick_two(call.random, policy.shards());
        let pair = [limit.shard(digest, a), limit.shard(digest, b)];
        let stored = [states.read(pair[0])?, states.read(pair[1])?].map(|stored| stored.state(&rule, call.now));
        let (which, outcome) = take_better(policy, start, stored, call.now, call.count);
        if outcome.decision.ok {
            let shard = if which == 0 { pair[0] } else { pair[1] };
            write(shard, &rule, outcome.write.filter(|_| call.op == Op::Take));
            return Ok(outcome.decision);
        }
    }
    let mut all = read_all(states, limit, digest, &rule, call.now)?;
    let mut pool = Pool::new(policy, start, &mut all, call.now);
    let (decision, writes_all) = call.on_pool(&mut pool);
    if writes_all {
        for (shard, state) in (0..).zip(&all) {
            write(limit.shard(digest, shard), &rule, *state);
        }
    }
    Ok(decision)
}

fn read_all<S: Read>(
    states: &S,
    limit: &Limit,
    digest: Digest,
    rule: &Rule,
    now: f64,
) -> Result<Vec<Option<State>>, S::Error> {
    let mut all = Vec::with_capacity(limit.policy().shards() as usize);
    for shard in 0..limit.policy().shards() {
        all.push(states.read(limit.shard(digest, shard))?.state(rule, now));
    }
    Ok(all)
}

/// What a call on several limits would answer.
pub type All = (bool, Option<f64>, Vec<Decision>);

/// Takes from all members or from none (without `takes`: only tells); see
/// [`Table::take_all`](crate::Table::take_all). What it would store is added to `changes`.
///
/// # Errors
/// The first of the table's own.
#[inline(never)]
pub fn plan_all<S: Read>(
    states: &S,
    members: &[Member<'_>],
    now: f64,
    takes: bool,
    changes: &mut Vec<Change>,
) -> Result<All, S::Error> {
    let mut decisions: Vec<Decision> = Vec::with_capacity(members.len());
    let mut digests: Vec<Digest> = Vec::with_capacity(members.len());
    for member in members {
        digests.push(member.digest());
    }
    for (i, (member, digest)) in members.iter().zip(&digests).enumerate() {
        // Two requests on one state ask for their sum, of what is stored.
        let mut count = 0.0;
        let mut last = true;
        for (j, (other, same)) in members.iter().zip(&digests).enumerate() {
            if same == digest && j <= i {
                count += other.count;
            }
            last &= same != digest || j <= i;
        }
        let call = Call { op: Op::Take, now, count, reserve: member.reserve, random: member.random };
        let before = changes.len();
        decisions.push(plan(states, member.limit, member.key, *digest, &call, changes)?);
        // The last of those on one limit has their sum; of several shards, the others may have picked others.
        if !last {
            changes.truncate(before);
        }
    }
    let ok = decisions.iter().all(|decision| decision.ok);
    if !(ok && takes) {
        changes.clear();
    }
    Ok((ok, latest(ok, decisions.iter().map(|decision| (decision.ok, decision.retry_at))), decisions))
}

/// The limit's two numbers at `now`: of all shards together.
///
/// # Errors
/// The table's own.
#[inline(never)]
pub fn value<S: Read>(states: &S, limit: &Limit, key: Option<&[u8]>, now: f64) -> Result<State, S::Error> {
    let digest = limit.digest(key);
    if limit.policy().shards() == 1 {
        let rule = limit.rule(key);
        return Ok(rule.refill(states.read(digest)?.state(&rule, now), now));
    }
    let start = limit.start(key);
    let mut all = read_all(states, limit, digest, &limit.policy().shard_rule(start), now)?;
    Ok(Pool::new(limit.policy(), start, &mut all, now).state())
}

/// Forgets the limit, every shard of it.
///
/// # Errors
/// The first of the table's own.
#[inline(never)]
pub fn reset<S: Write>(states: &mut S, limit: &Limit, key: Option<&[u8]>) -> Result<(), S::Error> {
    let digest = limit.digest(key);
    for shard in 0..limit.policy().shards() {
        states.remove(limit.shard(digest, shard))?;
    }
    Ok(())
}
