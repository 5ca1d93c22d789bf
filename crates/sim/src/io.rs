//! All that is not a node: the store, the network, and whoever counts. A node reaches the store by [`Io::send`] alone.

use rand_chacha::ChaCha8Rng;
use tidegate_core::{Policy, Rule};

use crate::clock::{Mark, NodeClock};
use crate::demand::Call;
use crate::network::Wire;
use crate::node::About;
use crate::node::breaker::Breaker;
use crate::queue::Queue;
use crate::scenario::Scenario;
use crate::store::{Op, Reply, Step, Store};
use crate::tally::Tally;
use crate::time::{MS, Us};

/// ms that a call waits for the store: the default of `timeout`.
pub const DEADLINE: Us = 250 * MS;

/// What happens.
#[derive(Debug)]
pub enum Event {
    /// A request arrives.
    Asked(Call),
    /// A node's turn is over: what it gathered goes off.
    Turn {
        /// Which node.
        node: u32,
        /// Which life of it.
        life: u32,
    },
    /// A round trip has reached the store.
    AtStore(Box<Trip>),
    /// The answer has reached the node, or its time is up (`None`).
    AtNode(Box<Trip>, Option<Vec<Reply>>),
    /// A node is killed.
    Killed(u32),
    /// A node is back.
    Started(u32),
    /// A node is cut off from the store, or no longer.
    Cut(u32, bool),
    /// A node's clock is set, microseconds.
    Set(u32, i64),
    /// The store's clock is set, microseconds ahead.
    StoreSet(i64),
}

/// A round trip.
#[derive(Debug)]
pub struct Trip {
    /// Who asks.
    pub node: u32,
    /// Which life of it: what a killed process asked for comes to nobody.
    pub life: u32,
    /// When it left.
    pub left: Us,
    /// The same on the node's clocks.
    pub mark: Mark,
    /// What is asked.
    pub steps: Vec<Step>,
    /// What for.
    pub about: About,
}

/// What a node has of the outside.
#[derive(Debug, Default)]
pub struct Link {
    /// Which node it is.
    pub node: u32,
    /// How often it has been killed.
    pub life: u32,
    /// Whether it runs.
    pub up: bool,
    /// From how many partitions it is cut off at the moment.
    pub cuts: u32,
    /// Its clocks.
    pub clock: NodeClock,
    /// Whether it asks the store at all.
    pub breaker: Breaker,
}

/// How a call ends.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// Granted.
    Granted,
    /// Denied, and told when to come back; the node that denies has so much in hand itself.
    Denied {
        /// ms on the store's clock.
        retry_at: Option<f64>,
        /// Tokens.
        hand: f64,
    },
    /// The store did not answer: the default is to deny, and to say so.
    Failed,
}

/// All that is not a node.
#[derive(Debug)]
pub struct Io {
    /// Microseconds since the beginning.
    pub now: Us,
    /// The limit.
    pub policy: Policy,
    /// The limit as a whole.
    pub rule: Rule,
    /// What happens next.
    pub queue: Queue<Event>,
    /// The shared store.
    pub store: Store,
    /// The network.
    pub wire: Wire,
    /// Which shards.
    pub pick: ChaCha8Rng,
    /// Whoever counts.
    pub tally: Tally,
}

impl Io {
    /// The beginning of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario, policy: Policy) -> Io {
        Io {
            now: 0,
            policy,
            rule: policy.rule(0.0),
            queue: Queue::new(),
            store: Store::new(policy, scenario.keys),
            wire: Wire::new(scenario),
            pick: crate::random::stream(scenario.seed, crate::random::Purpose::Shards),
            tally: Tally::new(scenario, policy.rule(0.0)),
        }
    }

    /// Sends a round trip, which ends in one [`Event::AtNode`] within the deadline. Where the breaker is open nothing is
    /// sent, and what it was for comes back.
    pub fn send(&mut self, link: &mut Link, steps: Vec<Step>, about: About) -> Result<(), (Vec<Step>, About)> {
        if !link.breaker.admits(self.now) {
            return Err((steps, about));
        }
        let mark = Mark::new(&link.clock, self.now);
        let trip = Box::new(Trip { node: link.node, life: link.life, left: self.now, mark, steps, about });
        match self.wire.hop().filter(|_| link.cuts == 0) {
            Some(delay) => self.queue.put(self.now + delay, Event::AtStore(trip)),
            None => {
                self.strand_gives(&trip.steps);
                self.queue.put(self.now + DEADLINE, Event::AtNode(trip, None));
            }
        }
        Ok(())
    }

    /// The store does what a round trip asks for, and answers. `cut`: the answer cannot get through.
    pub fn serve(&mut self, trip: Box<Trip>, cut: bool) {
        self.tally.trips += 1;
        let mut replies = Vec::with_capacity(trip.steps.len());
        let mut whole = true;
        for &step in &trip.steps {
            // Shards live apart: each has a message of its own, which may be lost alone.
            if trip.about.is_apart() && trip.steps.len() > 1 && self.wire.loses() {
                whole = false;
                self.strand_gives(&[step]);
                continue;
            }
            let reply = self.store.step(step, self.now);
            self.tally.stepped(step, &reply);
            replies.push(reply);
        }
        let until = trip.left + DEADLINE;
        match self.wire.hop().map(|delay| self.now + delay).filter(|&at| whole && !cut && at < until) {
            Some(at) => self.queue.put(at, Event::AtNode(trip, Some(replies))),
            None => {
                self.tally.strand(replies.iter().map(|reply| reply.taken).sum());
                self.queue.put(until.max(self.now), Event::AtNode(trip, None));
            }
        }
    }

    /// A call ends.
    pub fn settle(&mut self, call: Call, verdict: Verdict) {
        let latest = self.store.latest(self.now);
        let honesty = match verdict {
            Verdict::Denied { retry_at: Some(at), hand } => {
                Some(self.store.judge(call.key, call.count - hand, at, self.now))
            }
            _ => None,
        };
        self.tally.settled(call, verdict, honesty, self.now, latest);
    }

    /// Tokens that were to be brought back by steps that never come to the store.
    pub fn strand_gives(&mut self, steps: &[Step]) {
        self.tally.strand(steps.iter().filter(|step| step.op == Op::Give).map(|step| step.count).sum());
    }
}
