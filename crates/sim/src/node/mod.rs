//! A node: a process that decides on calls, by asking the store.

pub mod breaker;
mod demand;
mod direct;
mod lease;
mod leases;
mod spread;
mod waiting;

use crate::clock::Mark;
use crate::demand::Call;
use crate::io::{Io, Link};
use crate::scenario::Mode;
use crate::store::Reply;

use direct::Direct;
use leases::{Leases, Stage};
use spread::Spread;

/// What a round trip is for.
#[derive(Debug)]
pub enum About {
    /// Calls, one step each.
    Calls(Vec<Call>),
    /// The lease on a key.
    Lease(u32, Stage),
    /// A call on shards that live apart.
    Spread(Box<Spread>),
    /// Tokens that are brought back; nobody waits.
    Back,
}

impl About {
    /// Whether its steps go to different servers.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        matches!(self, About::Spread(_))
    }
}

/// A process.
#[derive(Debug)]
pub struct Node {
    /// What it has of the outside.
    pub link: Link,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Direct(Direct),
    Lease(Box<Leases>),
    Spread,
}

impl Node {
    /// A node that runs, and has nothing in hand.
    #[must_use]
    pub fn new(node: u32, mode: Mode) -> Node {
        let way = match mode {
            Mode::Exact => Way::Direct(Direct::new(None)),
            Mode::Batch { turn_us } => Way::Direct(Direct::new(Some(turn_us))),
            Mode::Lease(lending) => Way::Lease(Box::new(Leases::new(lending))),
            Mode::Shards { .. } => Way::Spread,
        };
        Node { link: Link { node, up: true, ..Link::default() }, way }
    }

    /// A call arrives.
    pub fn ask(&mut self, io: &mut Io, call: Call) {
        match &mut self.way {
            Way::Direct(direct) => direct.ask(&mut self.link, io, call),
            Way::Lease(leases) => leases.ask(&mut self.link, io, call),
            Way::Spread => spread::ask(&mut self.link, io, call),
        }
    }

    /// What was gathered goes off.
    pub fn turn(&mut self, io: &mut Io) {
        if let Way::Direct(direct) = &mut self.way {
            direct.turn(&mut self.link, io);
        }
    }

    /// A round trip of this life ended: in an answer, or without one in time.
    pub fn ended(&mut self, io: &mut Io, about: About, replies: Option<&[Reply]>, mark: Mark) {
        self.link.breaker.ended(replies.is_some(), io.now);
        match (about, &mut self.way) {
            (About::Calls(calls), _) => direct::ended(io, &calls, replies),
            (About::Lease(key, stage), Way::Lease(leases)) => {
                leases.ended(&mut self.link, io, key, stage, replies, mark)
            }
            (About::Spread(call), _) => spread::ended(&mut self.link, io, call, replies),
            (About::Lease(..) | About::Back, _) => {}
        }
    }

    /// The process is killed, with all that it has in hand and all who wait.
    pub fn killed(&mut self, io: &mut Io, mode: Mode) {
        io.tally.strand(self.in_hand());
        io.tally.cut_off += self.waiting();
        let Link { node, life, cuts, clock, .. } = self.link;
        *self = Node::new(node, mode);
        self.link = Link { life: life + 1, cuts, clock, up: false, ..Link::default() };
        self.link.node = node;
    }

    /// Tokens in hand.
    #[must_use]
    pub fn in_hand(&self) -> f64 {
        if let Way::Lease(leases) = &self.way { leases.in_hand() } else { 0.0 }
    }

    /// Calls that wait here, and not in a round trip.
    fn waiting(&self) -> u64 {
        match &self.way {
            Way::Direct(direct) => direct.waiting(),
            Way::Lease(leases) => leases.waiting(),
            Way::Spread => 0,
        }
    }
}

/// What comes to nobody, since the process that asked was killed: calls that waited, and tokens that were taken for them.
pub fn orphaned(io: &mut Io, about: &About, replies: Option<&[Reply]>) {
    io.tally.strand(replies.unwrap_or_default().iter().map(|reply| reply.taken).sum());
    match about {
        About::Calls(calls) => io.tally.cut_off += calls.len() as u64,
        About::Spread(call) => {
            io.tally.cut_off += 1;
            io.tally.strand(call.held());
        }
        About::Lease(..) | About::Back => {}
    }
}
