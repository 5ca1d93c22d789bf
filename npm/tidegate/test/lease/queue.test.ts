/** Requests made while a refill is in flight: denied immediately if that is certain, otherwise as the store decides. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Config, defineLimits } from "../../src/index.ts";
import { type Turn, type WaitingRequest, WaitingRequests } from "../../src/limiter/lease/lease.ts";
import { still, World } from "./world.ts";

test("a request that cannot be granted behind the queued ones is denied without waiting", async () => {
  const world = new World({ kind: "token bucket", rate: 1000, period: 1000, capacity: 100 }, () => 5);
  const node = world.node();
  void world.limit(node, { count: 100 });
  await world.pass(60);
  const answers: boolean[] = [];
  for (let i = 0; i < 300; i++) void world.limit(node).then(({ ok }) => answers.push(ok));
  await world.settle();
  // The 100 were taken 55 ms ago: 55 tokens can have refilled, and exactly 55 requests are queued for them.
  const denied = answers.filter((ok) => !ok).length;
  expect(denied).toBe(300 - 55);
  expect(answers.length).toBe(denied);
  await world.pass(20);
  expect(answers.length).toBe(300);
  expect(answers.filter((ok) => ok).length).toBeGreaterThanOrEqual(55);
});

test("`retryAt` of a denial behind queued requests is when the tokens suffice for all", async () => {
  const world = new World({ kind: "token bucket", rate: 1000, period: 1000, capacity: 100 }, () => 5);
  const node = world.node();
  void world.limit(node, { count: 100 });
  await world.pass(40);
  void world.limit(node, { count: 20 });
  const behind = await node.limit("hot", { count: 50 });
  // 35 of 70 are left: the 100 were taken 35 ms ago.
  expect(behind.ok).toBe(false);
  expect(behind.retryAt).toBe(world.clock.now() + 70 - 35);
});

test("at one instant, one node decides on calls in their order", async () => {
  const counts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 80 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 200 }), counts, counts, counts, async (capacity, ...rounds) => {
      const world = new World(still(capacity), () => 1);
      const node = world.node();
      const plain = defineLimits({ hot: still(capacity) }, { now: world.clock.now });
      for (const round of rounds) {
        const answers = Promise.all(round.map((count) => node.limit("hot", { count })));
        // Some calls are made while the first are in flight.
        await world.pass(1);
        const late = Promise.all(round.map((count) => node.limit("hot", { count })));
        await world.pass(60);
        const here = [...(await answers), ...(await late)].map(({ ok }) => ok);
        const there = [...round, ...round].map((count) => plain.limit("hot", { count }).ok);
        expect(here).toEqual(there);
      }
    }),
    { numRuns: 60 },
  );
}, 120_000);

test("a lease measures what other nodes take, and then requests no more than is likely left", async () => {
  const config: Config = { kind: "token bucket", rate: 100_000, period: 1000, capacity: 1000 };
  const world = new World(config, () => 1);
  const nodes = [world.node(), world.node(), world.node(), world.node()];
  await world.pass(200, () => {
    for (const node of nodes) for (let i = 0; i < 60; i++) void world.limit(node);
  });
  await world.pass(20);
  // A round trip takes 2 ms: no node calls the store more than once in that time, and hardly ever in vain.
  expect(world.calls).toBeLessThan((nodes.length * 220) / 2);
  expect(world.granted).toBeGreaterThan(0.97 * (1000 + 100 * 200));
});

test("a smaller request behind a larger one is not denied early: the store may deny the larger one", async () => {
  const world = new World(still(101), () => 1);
  const node = world.node();
  void world.limit(node);
  await world.pass(4);
  const others = world.node(false);
  void world.limit(others, { count: 50 });
  await world.pass(4);
  // 50 of the 100 tokens in the node's last response are gone.
  const answers = [80, 30, 20].map((count) => world.limit(node, { count }));
  await world.pass(20);
  expect((await Promise.all(answers)).map(({ ok }) => ok)).toEqual([false, true, true]);
});

test("a decision made before tokens returned denies no request", async () => {
  const ways: number[] = [];
  const world = new World(still(10), () => ways.shift() ?? 0);
  const node = world.node({ ahead: 200 });
  expect((await world.limit(node, { count: 10 })).ok).toBe(true);
  world.clock.advance(200);
  // The store denies it after 1 ms; the response arrives after 20.
  ways.push(1, 19);
  const slow = world.limit(node, { count: 5 });
  await world.pass(3);
  await node.give("hot", { count: 5 });
  await world.pass(30);
  expect((await slow).ok).toBe(true);
});

test("on a stopped clock, at most a few times the demand is leased", async () => {
  const world = new World(still(1_000_000));
  const node = world.node();
  for (let i = 0; i < 40; i++) {
    await world.limit(node);
    await world.settle();
    expect(world.unspent).toBeLessThanOrEqual(8 * world.granted);
  }
});

test("the queue sums the tokens of its requests", () => {
  let cancelled = 0;
  const turn: Turn = { waiting: 0, cancel: () => void cancelled++ };
  const queue = new WaitingRequests();
  const waiting = [3, 5, 2].map((count): WaitingRequest => ({ count, turn, resolve() {}, reject() {} }));
  for (const one of waiting) queue.add(one);
  expect([queue.size, queue.tokens, queue.most]).toEqual([3, 10, 5]);
  queue.delete(waiting[1] as WaitingRequest);
  queue.delete(waiting[1] as WaitingRequest);
  expect([queue.size, queue.tokens, queue.first]).toEqual([2, 5, waiting[0]]);
  expect([...queue]).toEqual([waiting[0], waiting[2]]);
  for (const one of waiting) queue.delete(one);
  expect([queue.size, queue.tokens, queue.most, queue.first, turn.waiting]).toEqual([0, 0, 0, undefined, 0]);
  expect(cancelled).toBe(1);
});
