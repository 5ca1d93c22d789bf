/** Those who come while a node asks the store: denied at once where that is certain, and otherwise as the store would. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Config, defineLimits } from "../../src/index.ts";
import { World } from "./world.ts";

const HOUR = 3_600_000;

/** Of which nothing refills while a test looks. */
const still = (capacity: number): Config => ({ kind: "token bucket", rate: 1, period: HOUR, capacity });

test("who cannot get anything behind those who wait is denied without waiting", async () => {
  const world = new World({ kind: "token bucket", rate: 1000, period: 1000, capacity: 100 }, () => 5);
  const node = world.node();
  void world.limit(node, { count: 100 });
  await world.pass(60);
  const answers: boolean[] = [];
  for (let i = 0; i < 300; i++) void world.limit(node).then(({ ok }) => answers.push(ok));
  await world.settle();
  // The 100 were taken 55 ms ago: so many can have come back, so many wait for them, and nobody else does.
  const denied = answers.filter((ok) => !ok).length;
  expect(denied).toBe(300 - 55);
  expect(answers.length).toBe(denied);
  await world.pass(20);
  expect(answers.length).toBe(300);
  expect(answers.filter((ok) => ok).length).toBeGreaterThanOrEqual(55);
});

test("a denial behind those who wait tells when there is enough for all of them", async () => {
  const world = new World({ kind: "token bucket", rate: 1000, period: 1000, capacity: 100 }, () => 5);
  const node = world.node();
  void world.limit(node, { count: 100 });
  await world.pass(40);
  void world.limit(node, { count: 20 });
  const behind = await node.limit("hot", { count: 50 });
  // Of 70 there are 35: the 100 were taken 35 ms ago.
  expect(behind.ok).toBe(false);
  expect(behind.retryAt).toBe(world.clock.now() + 70 - 35);
});

test("at one moment, one node decides on any calls as their order says", async () => {
  const counts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 80 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 200 }), counts, counts, counts, async (capacity, ...rounds) => {
      const world = new World(still(capacity), () => 1);
      const node = world.node();
      const plain = defineLimits({ hot: still(capacity) }, { now: world.clock.now });
      for (const round of rounds) {
        const told = Promise.all(round.map((count) => node.limit("hot", { count })));
        // Some come while the first of them are on their way.
        await world.pass(1);
        const late = Promise.all(round.map((count) => node.limit("hot", { count })));
        await world.pass(60);
        const here = [...(await told), ...(await late)].map(({ ok }) => ok);
        const there = [...round, ...round].map((count) => plain.limit("hot", { count }).ok);
        expect(here).toEqual(there);
      }
    }),
    { numRuns: 60 },
  );
}, 120_000);

test("what others took is learned: then no more is asked for than is likely there", async () => {
  const config: Config = { kind: "token bucket", rate: 100_000, period: 1000, capacity: 1000 };
  const world = new World(config, () => 1);
  const nodes = [world.node(), world.node(), world.node(), world.node()];
  await world.pass(200, () => {
    for (const node of nodes) for (let i = 0; i < 60; i++) void world.limit(node);
  });
  await world.pass(20);
  // Two ms there and back: no node asks more than once in that time, and hardly ever in vain.
  expect(world.calls).toBeLessThan((nodes.length * 220) / 2);
  expect(world.granted).toBeGreaterThan(0.97 * (1000 + 100 * 200));
});
