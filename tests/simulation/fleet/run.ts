/** A run: requests and faults until there are no more events, then every lease is given back. */
import type { AllDecision, Decision } from "tidegate";
import { EPOCH_MS, MS, World } from "../engine/world.ts";
import { type Request, Requests } from "./demand.ts";
import { type Figures, figuresOf } from "./figures.ts";
import { schedule } from "./faults.ts";
import { Redis } from "./network.ts";
import { FleetNode } from "./node.ts";
import { type Scenario, shardsOf } from "./scenario.ts";
import { Tally } from "./tally.ts";

/** µs that a call may take: the default of `timeout`. */
const DEADLINE = 250 * MS;

export async function run(scenario: Scenario): Promise<Figures> {
  const world = new World(scenario.seed);
  const tally = new Tally(scenario);
  const { seed, network } = scenario;
  const servers = shardsOf(scenario.mode);
  const redis = await Redis.start(world, { seed, network, servers }, (step) => tally.stepped(step));
  const nodes = Array.from(
    { length: scenario.nodes },
    () =>
      new FleetNode(scenario, world, redis, {
        answered: (request: Request, decision: Decision | AllDecision, called: number) => {
          const late = world.now - called > DEADLINE;
          tally.answered(request, decision as Decision, { called, now: world.now, server: redis.now(), late });
        },
        lost: (requests) => {
          tally.lost += requests.length;
        },
      }),
  );
  schedule(scenario, world, nodes, redis);
  for (const node of nodes) node.start();
  const requests = new Requests(scenario);
  const next = (): void => {
    const request = requests.next();
    if (request.at >= scenario.lasts * MS) return;
    world.at(request.at, undefined, () => {
      const node = nodes[request.node] as FleetNode;
      // A load balancer sends no request to a stopped process.
      if (node.life !== undefined) {
        tally.arrived(request, Math.floor(EPOCH_MS + world.now / MS));
        // As an event of that process: its clocks and its timers.
        world.after(0, node.life, () => node.arrive(request));
      }
      next();
    });
  };
  next();
  await world.run();
  const { taken, given, trips, steps } = tally;
  for (const node of nodes) {
    if (node.life !== undefined) world.after(0, node.life, () => node.release());
  }
  await world.run();
  redis.close();
  const leased = nodes.reduce((sum, node) => sum + node.released, 0);
  return figuresOf(scenario, tally, { leased, taken, given, trips, steps });
}
