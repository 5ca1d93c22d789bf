//! What is leased on one key: the rule of `npm/tidegate/src/lease/lease.ts`, deciding by the core's own [`core::Lease`].

use std::collections::VecDeque;

use tidegate_core::{self as core, Decision, Rule, Spending, State};

use crate::clock::{Mark, NodeClock, ServerClock};
use crate::demand::Call;
use crate::scenario::Lending;
use crate::time::Us;

use super::demand::Demand;

/// What is leased on one key, and who waits for it.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) waiting: VecDeque<Call>,
    /// A round trip is under way: the how manieth for the first who waited when it began.
    pub(super) asking: Option<(u32, Option<u64>)>,
    /// Until when nothing is taken ahead, since the store failed, by the node's clock.
    pub(super) quiet_until: f64,
    /// When somebody asked last, by the store's clock.
    pub(super) used_at: f64,
    pub(super) hand: f64,
    /// Tokens that were in hand for too long, since this was last read.
    pub(super) expired: f64,
    clock: ServerClock,
    demand: Demand,
    kept: Option<State>,
    low: f64,
    told_at: f64,
    lent_at: f64,
}

/// How a call on a lease ends.
pub(super) struct Spent {
    pub(super) decision: Decision,
    /// Tokens in hand when it was decided.
    pub(super) hand: f64,
}

impl Lease {
    pub(super) fn new() -> Lease {
        Lease {
            waiting: VecDeque::new(),
            asking: None,
            quiet_until: f64::NEG_INFINITY,
            used_at: 0.0,
            hand: 0.0,
            expired: 0.0,
            clock: ServerClock::default(),
            demand: Demand::default(),
            kept: None,
            low: 0.0,
            told_at: f64::NEG_INFINITY,
            lent_at: f64::NEG_INFINITY,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.kept.is_some()
    }

    pub(super) fn is_low(&self) -> bool {
        self.hand < self.low
    }

    /// The time on the store's clock, at the latest.
    pub(super) fn now(&self, clock: &NodeClock, at: Us) -> f64 {
        self.clock.latest(clock, at)
    }

    /// Takes out of hand, or denies by what the store told a moment ago. `None`: only the store can tell.
    pub(super) fn spend(
        &mut self,
        (rule, lending): (&Rule, &Lending),
        clock: &NodeClock,
        at: Us,
        count: f64,
    ) -> Option<Spent> {
        let now = self.clock.usual(clock, at);
        let spent = self.spend_at((rule, lending), now, count)?;
        let latest = self.now(clock, at);
        // A denial has to hold by the latest that the store's clock can be.
        if spent.decision.ok || latest <= now { Some(spent) } else { self.spend_at((rule, lending), latest, count) }
    }

    pub(super) fn spend_at(&mut self, (rule, lending): (&Rule, &Lending), now: f64, count: f64) -> Option<Spent> {
        let kept = self.kept?;
        self.age(lending, now);
        let hand = self.hand;
        match (core::Lease { kept, hand }).spend(rule, now, count) {
            Spending::Ask(_) => None,
            Spending::Granted(decision, left) => {
                self.used_at = now;
                self.hand = left;
                self.demand.spent += count;
                Some(Spent { decision, hand })
            }
            Spending::Denied(decision) => {
                let old = now - self.told_at >= lending.ahead && decision.retry_at.is_some();
                (!old).then_some(Spent { decision, hand })
            }
        }
    }

    /// How many tokens to ask the store for: what those who wait lack, and some ahead. 0: none.
    pub(super) fn size(&mut self, (rule, lending): (&Rule, &Lending), now: f64, first_only: bool) -> f64 {
        self.age(lending, now);
        let kept = self.kept.map(|kept| rule.project(Some(kept), now).value());
        let room = kept.unwrap_or(rule.capacity());
        let mut need = 0.0;
        for call in &self.waiting {
            if need + call.count <= self.hand + room {
                need += call.count;
            }
            if first_only {
                break;
            }
        }
        let lacks = (need - self.hand).max(0.0);
        let asked = if lacks.ceil() <= room { lacks.ceil() } else { lacks };
        let Some(kept) = kept.filter(|_| !first_only) else { return asked };
        let wanted = self.demand.ahead(lending, now, need) - (self.hand + asked - need);
        asked + wanted.min(lending.share * (kept - asked)).floor().max(0.0)
    }

    /// Nothing more to take ahead for now: asked again when half of what is in hand is spent.
    pub(super) fn rest(&mut self) {
        self.low = self.hand / 2.0;
    }

    /// Learns what the store holds after a step in which it lent so many tokens.
    pub(super) fn told(&mut self, lending: &Lending, decision: &Decision, now: f64, lent: f64, mark: Mark) {
        self.clock.learn(mark, now);
        // Decided before any state was read.
        if decision.reason.is_some() {
            return;
        }
        self.age(lending, now);
        self.kept = State::new(decision.value, decision.ts).ok();
        self.told_at = now;
        if lent > 0.0 {
            self.lent_at = now;
        }
        self.used_at = self.used_at.max(now);
        self.hand += lent;
        self.demand.begin(now);
        self.rest();
    }

    /// What is in hand, given up: whoever calls brings it back.
    pub(super) fn empty(&mut self, lending: &Lending, now: f64) -> f64 {
        self.age(lending, now);
        std::mem::take(&mut self.hand)
    }

    /// What was lent long ago is not spent any more.
    fn age(&mut self, lending: &Lending, now: f64) {
        if now - self.lent_at >= lending.expiry {
            self.expired += std::mem::take(&mut self.hand);
        }
    }
}
