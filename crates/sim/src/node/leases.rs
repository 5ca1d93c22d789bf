//! All that is leased at a node: the rule of `npm/tidegate/src/lease/leases.ts` and `ask.ts`.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tidegate_core::Rule;

use crate::clock::Mark;
use crate::demand::Call;
use crate::io::{DEADLINE, Io, Link, Verdict};
use crate::scenario::Lending;
use crate::store::{Op, Reply, Step};

use super::About;
use super::lease::{Lease, Spent};

/// One call in so many looks for a lease that nobody uses.
const SWEEP_ONE_IN: u32 = 64;
/// Keys looked after at the most.
const MAX_KEYS: usize = 10_000;
/// ms for which nothing is taken ahead after the store failed.
const QUIET: f64 = 100.0;
/// How often others may be quicker, until it is asked for no more than the first who waits lacks; and until nothing is
/// held back from the store while it decides.
const FOR_ALL: u32 = 2;
const FOR_ONE: u32 = 4;

/// Which step of an asking a round trip is.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// What it takes is in hand then.
    Lend,
    /// What was in hand goes back first.
    Back,
    /// The store decides on the first who waits.
    Straight,
}

#[derive(Debug)]
pub(super) struct Leases {
    lending: Lending,
    by_key: FxHashMap<u32, Lease>,
    /// Keys, those looked at longest ago first; some of them are no longer kept.
    looked: VecDeque<u32>,
    until_sweep: u32,
}

impl Leases {
    pub(super) fn new(lending: Lending) -> Leases {
        Leases { lending, by_key: FxHashMap::default(), looked: VecDeque::new(), until_sweep: SWEEP_ONE_IN }
    }

    pub(super) fn ask(&mut self, link: &mut Link, io: &mut Io, call: Call) {
        self.sweep(link, io);
        let looked = &mut self.looked;
        let lease = self.by_key.entry(call.key).or_insert_with(|| {
            looked.push_back(call.key);
            Lease::new()
        });
        let rule = io.rule;
        let by = (&rule, &self.lending);
        // Who waits goes first, as they would at the store.
        let spent = if lease.waiting.first().is_none() {
            lease.spend(by, &link.clock, io.now, call.count)
        } else {
            lease.behind(by, lease.now(&link.clock, io.now), call.count)
        };
        match spent {
            Some(spent) => {
                settle(io, call, &spent);
                if lease.is_low() {
                    begin(lease, by, link, io, call.key);
                }
            }
            None => {
                lease.waiting.push(call);
                begin(lease, by, link, io, call.key);
            }
        }
        io.tally.strand(std::mem::take(&mut lease.expired));
    }

    pub(super) fn ended(
        &mut self,
        link: &mut Link,
        io: &mut Io,
        key: u32,
        stage: Stage,
        replies: Option<&[Reply]>,
        mark: Mark,
    ) {
        // A lease with a round trip under way is never dropped.
        let Some(lease) = self.by_key.get_mut(&key) else { return };
        let rule = io.rule;
        let by = (&rule, &self.lending);
        match replies.and_then(|replies| replies.first()) {
            None => fail(lease, by, link, io),
            Some(reply) => {
                let lent = if matches!(stage, Stage::Lend) { reply.taken } else { 0.0 };
                lease.told(by, (&link.clock, io.now, mark), reply, lent);
                answer(lease, by, link, io, key, stage, reply);
            }
        }
        io.tally.strand(std::mem::take(&mut lease.expired));
    }

    pub(super) fn in_hand(&self) -> f64 {
        self.by_key.values().map(|lease| lease.hand).sum()
    }

    pub(super) fn waiting(&self) -> u64 {
        self.by_key.values().map(|lease| lease.waiting.len() as u64).sum()
    }

    /// Looks at the lease that was looked at longest ago: what nobody asks for any more goes back.
    fn sweep(&mut self, link: &mut Link, io: &mut Io) {
        self.until_sweep -= 1;
        let full = self.by_key.len() > MAX_KEYS;
        if self.until_sweep > 0 && !full {
            return;
        }
        self.until_sweep = SWEEP_ONE_IN;
        let Some(key) = self.looked.pop_front() else { return };
        let Some(lease) = self.by_key.get_mut(&key) else { return };
        let now = lease.now(&link.clock, io.now);
        if lease.asking.is_some() || !(full || now - lease.used_at >= self.lending.expiry / 2.0) {
            self.looked.push_back(key);
            return;
        }
        let back = if lease.is_known() { lease.empty(&self.lending, now) } else { 0.0 };
        io.tally.strand(std::mem::take(&mut lease.expired));
        self.by_key.remove(&key);
        if back > 0.0 {
            let steps = vec![Step { op: Op::Give, key, shard: 0, count: back }];
            if let Err((steps, _)) = io.send(link, steps, About::Back) {
                io.strand_gives(&steps);
            }
        }
    }
}

type By<'a> = (&'a Rule, &'a Lending);

fn settle(io: &mut Io, call: Call, spent: &Spent) {
    let Spent { decision, hand, .. } = *spent;
    io.settle(call, if decision.ok { Verdict::Granted } else { Verdict::Denied { retry_at: decision.retry_at, hand } });
}

/// Begins to ask, unless somebody is at it.
fn begin(lease: &mut Lease, by: By, link: &mut Link, io: &mut Io, key: u32) {
    let is_quiet = lease.waiting.first().is_none() && link.clock.wall(io.now) < lease.quiet_until;
    if lease.asking.is_some() || is_quiet {
        return;
    }
    let first = lease.waiting.first().map(|call| call.id);
    attempt(lease, by, link, io, key, (1, first));
}

/// The next round trip for who waits first.
fn attempt(lease: &mut Lease, by: By, link: &mut Link, io: &mut Io, key: u32, (tries, first): (u32, Option<u64>)) {
    let now = lease.now(&link.clock, io.now);
    let count = lease.size(by, now, tries > FOR_ALL);
    if first.is_none() && count == 0.0 {
        lease.asking = None;
        return lease.rest();
    }
    lease.asking = Some((tries, first));
    if tries <= FOR_ONE {
        let op = if count == 0.0 { Op::Check } else { Op::Take };
        return put(lease, by, link, io, Step { op, key, shard: 0, count }, Stage::Lend);
    }
    let back = lease.empty(by.1, now);
    if back > 0.0 {
        return put(lease, by, link, io, Step { op: Op::Give, key, shard: 0, count: back }, Stage::Back);
    }
    straight(lease, by, link, io, key);
}

fn straight(lease: &mut Lease, by: By, link: &mut Link, io: &mut Io, key: u32) {
    if let Some(first) = lease.waiting.first() {
        let step = Step { op: Op::Take, key, shard: 0, count: first.count };
        put(lease, by, link, io, step, Stage::Straight);
    } else {
        lease.asking = None;
    }
}

fn put(lease: &mut Lease, by: By, link: &mut Link, io: &mut Io, step: Step, stage: Stage) {
    if let Err((steps, _)) = io.send(link, vec![step], About::Lease(step.key, stage)) {
        io.strand_gives(&steps);
        fail(lease, by, link, io);
    }
}

/// Answers those who wait, in their order, as far as what the store told settles them; and asks again for the rest.
fn answer(lease: &mut Lease, by: By, link: &mut Link, io: &mut Io, key: u32, stage: Stage, reply: &Reply) {
    match stage {
        Stage::Back => return straight(lease, by, link, io, key),
        Stage::Straight => {
            if let Some(first) = lease.waiting.shift() {
                settle(io, first, &Spent { decision: reply.decision, hand: 0.0, left: 0.0 });
            }
        }
        Stage::Lend => {
            while let Some(call) = lease.waiting.first() {
                let Some(spent) = lease.spend_at(by, reply.now, call.count) else { break };
                lease.waiting.shift();
                settle(io, call, &spent);
            }
        }
    }
    while lease.waiting.first().is_some_and(|call| call.at + DEADLINE <= io.now) {
        give_up(lease, by, link, io);
    }
    let Some(first) = lease.waiting.first().map(|call| call.id) else {
        lease.asking = None;
        return;
    };
    let tries = match lease.asking {
        Some((tries, Some(before))) if before == first => tries + 1,
        _ => 1,
    };
    attempt(lease, by, link, io, key, (tries, Some(first)));
}

/// Nobody need wait any longer for a store that failed.
fn fail(lease: &mut Lease, by: By, link: &mut Link, io: &mut Io) {
    lease.quiet_until = link.clock.wall(io.now) + QUIET;
    lease.asking = None;
    while lease.waiting.first().is_some() {
        give_up(lease, by, link, io);
    }
}

/// Decides on the first who waits without the store: out of hand, if there is enough.
fn give_up(lease: &mut Lease, by: By, link: &Link, io: &mut Io) {
    let Some(call) = lease.waiting.shift() else { return };
    match lease.spend(by, &link.clock, io.now, call.count) {
        Some(spent) => settle(io, call, &spent),
        None => io.settle(call, Verdict::Failed),
    }
}
