/** Schedules the faults of a scenario. */
import { below, stream } from "../engine/random.ts";
import { MS, type World } from "../engine/world.ts";
import type { Redis } from "./network.ts";
import type { FleetNode } from "./node.ts";
import type { Scenario } from "./scenario.ts";

/** The largest error of a node's clock rate. */
const DRIFT = 1e-4;

export function schedule(scenario: Scenario, world: World, nodes: readonly FleetNode[], redis: Redis): void {
  const { faults, lasts, seed } = scenario;
  const random = stream(seed, "faults");
  const time = (): number => below(random, lasts * MS);
  const anyNode = (): FleetNode => nodes[below(random, nodes.length)] as FleetNode;
  for (let i = 0; i < faults.crashes; i++) {
    const [at, node] = [time(), anyNode()];
    world.at(at, undefined, () => {
      if (node.life === undefined) return;
      node.kill();
      world.after(faults.down * MS, undefined, () => node.start());
    });
  }
  for (let i = 0; i < faults.partitions; i++) {
    const [at, node] = [time(), anyNode()];
    world.at(at, undefined, () => void node.cuts++);
    world.at(at + faults.cut * MS, undefined, () => void node.cuts--);
  }
  if (faults.skew > 0) {
    const skew = (): number => faults.skew * (2 * random() - 1);
    for (const node of nodes) {
      node.drift = DRIFT * (2 * random() - 1);
      node.setClock(skew());
      const later = skew();
      world.at(time(), undefined, () => node.setClock(later));
    }
  }
  if (faults.storeStep > 0) {
    const set = (at: number, offset: number): void => {
      world.at(Math.floor(at) * MS, undefined, () => {
        redis.offset = offset;
      });
    };
    set(lasts / 3, -faults.storeStep);
    set((lasts * 2) / 3, 0);
  }
}
