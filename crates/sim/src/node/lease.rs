//! What is leased on one key: the rule of `npm/tidegate/src/lease/lease.ts`, deciding by the core's own [`core::Lease`].

use tidegate_core::{self as core, Decision, Reason, Rule, Spending, State};

use crate::clock::{Mark, NodeClock, ServerClock};
use crate::scenario::Lending;
use crate::store::Reply;
use crate::time::Us;

use super::demand::Demand;
use super::waiting::Waiting;

/// What is leased on one key, and who waits for it.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) waiting: Waiting,
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
    /// How much of what the store could hold at the most it held, lately: the rest went to others.
    found: f64,
    told_at: f64,
    lent_at: f64,
}

/// How a call on a lease ends.
pub(super) struct Spent {
    pub(super) decision: Decision,
    /// Tokens in hand before it was decided, and after.
    pub(super) hand: f64,
    pub(super) left: f64,
}

impl Lease {
    pub(super) fn new() -> Lease {
        Lease {
            waiting: Waiting::default(),
            asking: None,
            quiet_until: f64::NEG_INFINITY,
            used_at: 0.0,
            hand: 0.0,
            expired: 0.0,
            clock: ServerClock::default(),
            demand: Demand::default(),
            kept: None,
            low: 0.0,
            found: 1.0,
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

    pub(super) fn spend_at(&mut self, by: (&Rule, &Lending), now: f64, count: f64) -> Option<Spent> {
        let spent = self.settled(by, self.kept?, now, count)?;
        if spent.decision.ok {
            self.used_at = now;
            self.hand = spent.left;
            self.demand.spent += count;
        }
        Some(spent)
    }

    /// Denies whoever comes behind those who wait, where there is too little even if none of them is denied.
    pub(super) fn behind(&mut self, by: (&Rule, &Lending), now: f64, count: f64) -> Option<Spent> {
        // Somebody who waits for more may be denied, and leave this one what it needs.
        let kept = self.kept.filter(|_| count >= self.waiting.most)?;
        let kept = State::new(kept.value() - self.waiting.tokens, kept.ts()).ok()?;
        let spent = self.settled(by, kept, now, count).filter(|spent| !spent.decision.ok)?;
        // What is in hand goes to those who wait.
        Some(Spent { hand: spent.hand - self.waiting.tokens, ..spent })
    }

    /// What it comes to, unless only the store can tell.
    fn settled(&mut self, (rule, lending): (&Rule, &Lending), kept: State, now: f64, count: f64) -> Option<Spent> {
        self.age(lending, now);
        let hand = self.hand;
        match (core::Lease { kept, hand }).spend(rule, now, count) {
            Spending::Ask(_) => None,
            Spending::Granted(decision, left) => Some(Spent { decision, hand, left }),
            Spending::Denied(decision) => {
                let old = now - self.told_at >= lending.ahead && decision.reason != Some(Reason::ExceedsCapacity);
                (!old).then_some(Spent { decision, hand, left: hand })
            }
        }
    }

    /// How many tokens to ask the store for: what those who wait lack, and some ahead. 0: none.
    pub(super) fn size(&mut self, (rule, lending): (&Rule, &Lending), now: f64, first_only: bool) -> f64 {
        self.age(lending, now);
        let kept = self.holds(rule, now);
        let room = kept.unwrap_or(rule.capacity());
        let (most, likely) = (self.hand + room, self.hand + room * self.found);
        let mut need = 0.0;
        for call in self.waiting.iter() {
            if need + call.count <= if need == 0.0 { most } else { likely } {
                need += call.count;
            }
            if first_only {
                break;
            }
        }
        let lacks = (need - self.hand).max(0.0);
        let asked = if lacks.ceil() <= most - self.hand { lacks.ceil() } else { lacks };
        let Some(kept) = kept.filter(|_| !first_only) else { return asked };
        let left = (kept * self.found - asked).max(0.0);
        let wanted = self.demand.ahead(lending, now, need) - (self.hand + asked - need);
        let share = (lending.share * left).max(self.demand.per_ms).min(left);
        asked + wanted.min(share).floor().max(0.0)
    }

    /// Nothing more to take ahead for now: asked again when half of what is in hand is spent.
    pub(super) fn rest(&mut self) {
        self.low = self.hand / 2.0;
    }

    /// Learns what the store holds after a step, of which the reply came just now, and in which it lent so many tokens.
    pub(super) fn told(&mut self, by: (&Rule, &Lending), clock: (&NodeClock, Us, Mark), reply: &Reply, lent: f64) {
        let ((rule, lending), (clock, at, mark)) = (by, clock);
        let Reply { decision, now, .. } = *reply;
        self.clock.learn(mark, now, clock, at);
        // Decided before any state was read.
        if decision.reason == Some(Reason::ExceedsCapacity) {
            return;
        }
        self.age(lending, now);
        if let Some(most) = self.holds(rule, now).filter(|most| *most > 0.0) {
            self.found = (self.found + ((decision.value + lent) / most).clamp(0.0, 1.0)) / 2.0;
        }
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

    /// The most that the store can hold by now, where it has told anything.
    fn holds(&self, rule: &Rule, now: f64) -> Option<f64> {
        self.kept.map(|kept| rule.project(Some(kept), now).value())
    }

    /// What was lent long ago is not spent any more.
    fn age(&mut self, lending: &Lending, now: f64) {
        if now - self.lent_at >= lending.expiry {
            self.expired += std::mem::take(&mut self.hand);
        }
    }
}
