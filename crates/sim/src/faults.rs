//! When what goes wrong.

use rand_chacha::ChaCha8Rng;

use crate::io::Event;
use crate::node::Node;
use crate::queue::Queue;
use crate::random::{Purpose, below, stream, unit};
use crate::scenario::Scenario;
use crate::time::{MS, Us};

/// How much too fast or slow a node's clock runs at the most.
const DRIFT: f64 = 1e-4;

/// Puts all faults of a scenario where they happen.
pub fn schedule(scenario: &Scenario, queue: &mut Queue<Event>, nodes: &mut [Node]) {
    let rng = &mut stream(scenario.seed, Purpose::Faults);
    let faults = &scenario.faults;
    let lasts = Us::from(scenario.lasts_ms) * MS;
    let any = |rng: &mut ChaCha8Rng| (below(rng, lasts), below(rng, u64::from(scenario.nodes)) as u32);
    for _ in 0..faults.crashes {
        let (at, node) = any(rng);
        queue.put(at, Event::Killed(node));
        queue.put(at + Us::from(faults.down_ms) * MS, Event::Started(node));
    }
    for _ in 0..faults.partitions {
        let (at, node) = any(rng);
        queue.put(at, Event::Cut(node, true));
        queue.put(at + Us::from(faults.cut_ms) * MS, Event::Cut(node, false));
    }
    if faults.skew_ms > 0 {
        let skew = |rng: &mut ChaCha8Rng| (f64::from(faults.skew_ms) * 1e3 * (2.0 * unit(rng) - 1.0)) as i64;
        for (number, node) in (0..).zip(nodes) {
            node.link.clock.offset = skew(rng);
            node.link.clock.drift = DRIFT * (2.0 * unit(rng) - 1.0);
            queue.put(below(rng, lasts), Event::Set(number, skew(rng)));
        }
    }
    if faults.store_steps_ms > 0 {
        queue.put(lasts / 3, Event::StoreSet(-1000 * i64::from(faults.store_steps_ms)));
        queue.put(lasts * 2 / 3, Event::StoreSet(0));
    }
}
