//! Each call is a step at the store: in a round trip of its own, or with those of one turn.

use crate::demand::Call;
use crate::io::{Event, Io, Link, Verdict};
use crate::store::{Op, Reply, Step};
use crate::time::Us;

use super::About;

/// Calls on their way to the store.
#[derive(Debug)]
pub(super) struct Direct {
    turn: Option<Us>,
    gathered: Vec<Call>,
}

impl Direct {
    pub(super) fn new(turn: Option<Us>) -> Direct {
        Direct { turn, gathered: Vec::new() }
    }

    pub(super) fn ask(&mut self, link: &mut Link, io: &mut Io, call: Call) {
        self.gathered.push(call);
        match self.turn {
            None => self.turn(link, io),
            Some(turn) if self.gathered.len() == 1 => {
                io.queue.put(io.now + turn, Event::Turn { node: link.node, life: link.life });
            }
            Some(_) => {}
        }
    }

    pub(super) fn turn(&mut self, link: &mut Link, io: &mut Io) {
        let calls = std::mem::take(&mut self.gathered);
        let steps =
            calls.iter().map(|call| Step { op: Op::Take, key: call.key, shard: 0, count: call.count }).collect();
        if let Err((_, About::Calls(calls))) = io.send(link, steps, About::Calls(calls)) {
            ended(io, &calls, None);
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.gathered.len() as u64
    }
}

pub(super) fn ended(io: &mut Io, calls: &[Call], replies: Option<&[Reply]>) {
    for (i, &call) in calls.iter().enumerate() {
        let verdict = match replies.and_then(|replies| replies.get(i)) {
            None => Verdict::Failed,
            Some(reply) if reply.decision.ok => Verdict::Granted,
            Some(reply) => Verdict::Denied { retry_at: reply.decision.retry_at, hand: 0.0 },
        };
        io.settle(call, verdict);
    }
}
