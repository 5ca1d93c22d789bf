//! A run: events in their order, until nothing more happens.

use tidegate_core::InputError;

use crate::demand::Requests;
use crate::faults;
use crate::figures::Figures;
use crate::io::{Event, Io};
use crate::node::{Node, orphaned};
use crate::scenario::Scenario;
use crate::time::{MS, Us};

/// All nodes, and all that is not a node.
#[derive(Debug)]
pub struct World<'a> {
    scenario: &'a Scenario,
    nodes: Vec<Node>,
    requests: Requests,
    io: Io,
}

/// Runs a scenario to its end. The error is that of a limit which is out of range.
///
/// ```
/// use tidegate_sim::scenario::{Lending, Mode};
/// let scenario = tidegate_sim::cases::hot("example", 4, 2.0, Mode::Lease(Lending::DEFAULT));
/// let figures = tidegate_sim::world::run(&scenario)?;
/// assert_eq!(figures.over_admitted, 0.0);
/// # Ok::<(), tidegate_core::InputError>(())
/// ```
pub fn run(scenario: &Scenario) -> Result<Figures, InputError> {
    let policy = scenario.limit.policy(scenario.mode.shards())?;
    let mut world = World {
        scenario,
        nodes: (0..scenario.nodes).map(|node| Node::new(node, scenario.mode)).collect(),
        requests: Requests::new(scenario),
        io: Io::new(scenario, policy),
    };
    faults::schedule(scenario, &mut world.io.queue, &mut world.nodes);
    world.draw();
    while let Some((at, event)) = world.io.queue.take() {
        world.io.now = at;
        world.happen(event);
    }
    Ok(world.figures())
}

impl World<'_> {
    fn ends(&self) -> Us {
        Us::from(self.scenario.lasts_ms) * MS
    }

    fn draw(&mut self) {
        let call = self.requests.draw();
        if call.at < self.ends() {
            self.io.queue.put(call.at, Event::Asked(call));
        }
    }

    fn happen(&mut self, event: Event) {
        let World { nodes, io, .. } = self;
        match event {
            Event::Asked(call) => {
                let node = &mut nodes[call.node as usize];
                // Nobody is sent to a process that does not run.
                if node.link.up {
                    io.tally.arrived(call, io.now);
                    node.ask(io, call);
                }
                self.draw();
            }
            Event::Turn { node, life } => {
                let node = &mut nodes[node as usize];
                if node.link.life == life {
                    node.turn(io);
                }
            }
            Event::AtStore(trip) => {
                let cut = nodes[trip.node as usize].link.cuts > 0;
                io.serve(trip, cut);
            }
            Event::AtNode(trip, replies) => {
                let node = &mut nodes[trip.node as usize];
                if node.link.life == trip.life {
                    node.ended(io, trip.about, replies.as_deref(), trip.mark);
                } else {
                    orphaned(io, &trip.about, replies.as_deref());
                }
            }
            Event::Killed(node) => {
                let node = &mut nodes[node as usize];
                if node.link.up {
                    node.killed(io, self.scenario.mode);
                }
            }
            Event::Started(node) => nodes[node as usize].link.up = true,
            Event::Cut(node, off) => {
                let cuts = &mut nodes[node as usize].link.cuts;
                *cuts = if off { *cuts + 1 } else { *cuts - 1 };
            }
            Event::Set(node, offset) => nodes[node as usize].link.clock.offset = offset,
            Event::StoreSet(offset) => io.store.offset = offset,
        }
    }

    fn figures(&self) -> Figures {
        let in_hand = self.nodes.iter().map(Node::in_hand).sum();
        Figures::of(self.scenario, &self.io.tally, in_hand)
    }
}
