/** How nodes share a hot key: store calls, utilization, fairness, and the loss when a node crashes. */
import { expect, test } from "vitest";
import type { Config } from "../../src/index.ts";
import { still, World } from "./world.ts";

const SECOND = 1000;

/** 1 or 2 ms each way, at random: as on a network, no node is always first. */
function network(): () => number {
  let random = 1;
  return () => {
    random = (random * 48_271) % 0x7fff_ffff;
    return 1 + (random & 1);
  };
}

const bucket = (rate: number, capacity = rate): Config => ({ kind: "token bucket", rate, period: SECOND, capacity });

/** So many calls in each ms, for so many ms, by each node: what each was granted. */
async function load(world: World, ms: number, nodes: [node: ReturnType<World["node"]>, perMs: number][]) {
  const granted = nodes.map(() => 0);
  await world.pass(ms, () => {
    for (const [i, [node, perMs]] of nodes.entries()) {
      for (let j = 0; j < perMs; j++) {
        void world.limit(node).then(({ ok }) => {
          if (ok) granted[i] = (granted[i] as number) + 1;
        });
      }
    }
  });
  await world.pass(20);
  return granted;
}

test("with 50 decisions per ms on one key, fewer than one in a hundred reaches the store", {
  timeout: 60_000,
}, async () => {
  const world = new World(bucket(100_000), () => 1);
  const [granted] = await load(world, 1000, [[world.node(), 50]]);
  expect(granted).toBe(50_000);
  expect(world.calls).toBeLessThan(500);
});

test("a scarce limit is used up, in equal shares, with few store calls", {
  timeout: 60_000,
}, async () => {
  const world = new World(bucket(50_000, 5000), network());
  const nodes = [world.node(), world.node(), world.node()];
  const granted = await load(
    world,
    500,
    nodes.map((node) => [node, 40]),
  );
  const all = granted.reduce((sum, one) => sum + one, 0);
  expect(all).toBeGreaterThan(0.97 * (5000 + 50 * 500));
  for (const one of granted) expect(Math.abs(one / all - 1 / 3)).toBeLessThan(0.1);
  expect(world.calls).toBeLessThan(0.01 * 120 * 500);
  expect(world.excess(bucket(50_000, 5000)).fromStart).toBeLessThanOrEqual(1e-6);
});

test("a small demand gets its share beside a large one", { timeout: 60_000 }, async () => {
  const world = new World(bucket(50_000, 5000), network());
  const [large = 0, small = 0] = await load(world, 500, [
    [world.node(), 99],
    [world.node(), 1],
  ]);
  // Each node can get half of its requests; the small one must not get much less.
  expect(small / 500).toBeGreaterThan((0.5 * large) / (99 * 500));
});

test("the tokens of a crashed node refill with time, and no more than those", async () => {
  const config = bucket(1000);
  const world = new World(config, () => 1);
  await load(world, 100, [[world.node(), 5]]);
  const lost = world.unspent;
  expect(lost).toBeGreaterThan(0);
  // At most half of the store's tokens is leased in one step.
  expect(lost).toBeLessThanOrEqual(500);
  const next = world.node();
  await world.pass(1, () => void world.limit(next, { count: 1000 }));
  await world.pass(10);
  const before = world.granted;
  world.clock.advance(SECOND);
  await world.pass(1, () => void world.limit(next, { count: 1000 }));
  await world.pass(10);
  expect(world.granted - before).toBe(1000);
});

test("what a burst has leased may expire once: after that, a node leases `ahead` ms of its demand", async () => {
  const world = new World(still(1_000_000));
  const node = world.node({ ahead: 200, expiry: 2000 });
  for (let i = 0; i < 200; i++) void world.limit(node);
  await world.pass(500, () => void world.limit(node));
  // 40 calls in 200 ms.
  const steady = async (ms: number) => {
    for (let at = 0; at < ms; at += 5) {
      await world.limit(node);
      await world.settle();
      world.clock.advance(5);
    }
  };
  await steady(2500);
  const before = world.unspent;
  await steady(10_000);
  expect(world.unspent - before).toBeLessThanOrEqual(40);
});

test("an unused lease is given back, and an expired one is not spent", async () => {
  // So slow that no token refills meanwhile.
  const world = new World({ ...bucket(1000), period: 1_000_000_000 });
  const node = world.node({ ahead: 200, expiry: 1000 });
  for (let i = 0; i < 100; i++) await world.limit(node, { key: "idle" });
  await world.settle();
  expect(world.lent).toBeGreaterThan(100);
  world.clock.advance(600);
  for (let i = 0; i < 500; i++) await world.limit(node, { key: "busy" });
  await world.settle();
  // Only the spent tokens of "idle" are still missing.
  const idle = world.node(false).getValue("hot", { key: "idle" });
  expect(Math.round((await idle).value)).toBe(900);
  const old = world.node({ ahead: 200, expiry: 1000 });
  for (let i = 0; i < 100; i++) await world.limit(old, { key: "old" });
  await world.settle();
  world.clock.advance(1000);
  const calls = world.calls;
  await world.limit(old, { key: "old" });
  expect(world.calls).toBe(calls + 1);
});

test("only hot keys are leased: a rare key costs one store call per request", async () => {
  const world = new World(bucket(100));
  const node = world.node();
  for (let i = 0; i < 20; i++) {
    await world.limit(node);
    world.clock.advance(10_000);
  }
  await world.settle();
  expect(world.lent).toBe(20);
  expect(world.calls).toBe(20);
});
