/** What each call does if tokens are leased. */
import { describe, expect, test } from "vitest";
import { type Config, defineLimits } from "../../src/index.ts";
import { checkLease } from "../../src/limiter/lease/options.ts";
import { transactional } from "../../src/stores/index.ts";
import { World } from "./world.ts";

const config: Config = { kind: "token bucket", rate: 100, period: 1000 };

/** A node with leased tokens of "hot", on a limit of 100. */
async function leased(key?: string): Promise<{ world: World; node: ReturnType<World["node"]> }> {
  const world = new World(config);
  const node = world.node();
  for (let i = 0; i < 10; i++) await world.limit(node, key === undefined ? {} : { key });
  await world.settle();
  expect(world.lent).toBeGreaterThan(10);
  return { world, node };
}

test("a denial comes from the store: it counts the leased tokens, and its retryAt is when both suffice", async () => {
  const { world, node } = await leased();
  const all = await node.limit("hot", { count: 91 });
  expect(all).toMatchObject({ ok: false, value: 90, retryAfter: 10 });
  world.clock.advance(9);
  expect((await node.limit("hot", { count: 91 })).ok).toBe(false);
  world.clock.advance(1);
  expect((await node.limit("hot", { count: 91 })).ok).toBe(true);
});

test("a denial of the store is cached for `ahead` ms, and then refreshed", async () => {
  const slow = new World({ kind: "token bucket", rate: 1, period: 3_600_000 });
  const node = slow.node({ ahead: 200 });
  await slow.limit(node);
  expect((await slow.limit(node)).ok).toBe(false);
  const calls = slow.calls;
  for (let i = 0; i < 1000; i++) expect((await slow.limit(node)).ok).toBe(false);
  expect(slow.calls).toBe(calls);
  // Another node gives tokens back: that is seen after `ahead` ms, before retryAt.
  await slow.node(false).give("hot");
  slow.clock.advance(200);
  expect((await slow.limit(node)).ok).toBe(true);
});

test("check returns what limit would, and takes nothing; a count beyond the capacity is never granted", async () => {
  const { world, node } = await leased();
  for (const count of [1, 50, 90, 91]) {
    const checked = await node.check("hot", { count });
    expect(checked.ok).toBe(count <= 90);
    expect(checked.value).toBe(count <= 90 ? 90 - count : 90);
  }
  expect((await node.getValue("hot")).value).toBe(90);
  expect((await node.limit("hot", { count: 101 })).reason).toBe("exceeds capacity");
  expect((await world.node().limit("hot", { key: "fresh", count: 101 })).reason).toBe("exceeds capacity");
});

test("give takes effect immediately; a charge is owed before leased tokens are spent", async () => {
  const { world, node } = await leased();
  expect((await node.limit("hot", { count: 90 })).ok).toBe(true);
  expect((await node.limit("hot")).ok).toBe(false);
  await node.give("hot", { count: 5 });
  expect((await node.limit("hot", { count: 5 })).ok).toBe(true);
  expect((await node.limit("hot")).ok).toBe(false);
  world.clock.advance(1000);
  for (let i = 0; i < 10; i++) await world.limit(node);
  await node.charge("hot", { count: 200 });
  expect((await node.limit("hot")).ok).toBe(false);
});

test("a block ends the use of leased tokens here at once, and elsewhere when the store denies", async () => {
  const { world, node } = await leased();
  const end = world.clock.now() + 60_000;
  expect(await node.block("hot", { for: "1m" })).toMatchObject({ ok: true, retryAt: end });
  for (let i = 0; i < 100; i++) expect(await node.limit("hot")).toMatchObject({ ok: false, retryAt: end });
  await node.release();
  expect((await world.node(false).limit("hot")).retryAt).toBe(end);
  world.clock.set(end);
  expect((await node.limit("hot")).ok).toBe(true);
  await node.block("hot", { for: "1h" });
  await node.unblock("hot");
  expect((await node.limit("hot")).ok).toBe(true);
});

test("tokens that are leased while a block begins are not spent after it", async () => {
  const world = new World({ kind: "token bucket", rate: 10_000, period: "1h" }, () => 2);
  const node = world.node({ ahead: 1000 });
  const call = (): void => void world.limit(node);
  await world.pass(200, call);
  let blockedAt = Infinity;
  void node.block("hot", { for: "1h" }).then(() => {
    blockedAt = world.clock.now();
  });
  await world.pass(200, call);
  expect(blockedAt).toBeLessThan(world.clock.now());
  expect(world.grants.filter(([at]) => at > blockedAt)).toEqual([]);
});

test("a reservation first gives all leased tokens back", async () => {
  const { world, node } = await leased();
  const reserved = await node.limit("hot", { count: 95, reserve: true });
  expect(reserved).toMatchObject({ ok: true, reserved: true, value: -5, retryAfter: 50 });
  expect((await node.limit("hot")).ok).toBe(false);
  expect((await node.check("hot", { count: 1, reserve: true })).reserved).toBe(true);
  world.clock.advance(60);
  expect((await world.limit(node)).ok).toBe(true);
});

describe("limitAll", () => {
  test("is decided on leased tokens if they suffice", async () => {
    const { world, node } = await leased("a");
    for (let i = 0; i < 10; i++) await world.limit(node, { key: "b" });
    await world.settle();
    const calls = world.calls;
    const both = [
      { name: "hot", key: "a" },
      { name: "hot", key: "b" },
    ] as const;
    expect((await node.limitAll(both)).ok).toBe(true);
    expect((await node.checkAll(both)).ok).toBe(true);
    expect(world.calls).toBe(calls);
    expect((await node.getValue("hot", { key: "a" })).value).toBe(89);
  });

  test("is otherwise one step at the store, after the leased tokens were given back", async () => {
    const { world, node } = await leased("a");
    const all = [
      { name: "hot", key: "a", count: 90 },
      { name: "hot", key: "new", count: 100 },
    ] as const;
    expect((await node.checkAll(all)).ok).toBe(true);
    expect((await node.limitAll(all)).ok).toBe(true);
    expect((await node.limitAll(all)).ok).toBe(false);
    const plain = world.node(false);
    expect((await plain.getValue("hot", { key: "a" })).value).toBe(0);
    expect((await plain.getValue("hot", { key: "new" })).value).toBe(0);
    const twice = await node.limitAll([
      { name: "hot", key: "b", count: 60 },
      { name: "hot", key: "b", count: 60 },
    ]);
    expect(twice.ok).toBe(false);
  });
});

test("reset drops the leased tokens too: the limit is exactly full", async () => {
  const { world, node } = await leased();
  await node.reset("hot");
  expect((await node.limit("hot", { count: 100 })).ok).toBe(true);
  expect((await node.limit("hot")).ok).toBe(false);
  expect((await world.node(false).getValue("hot")).value).toBe(0);
});

test("an inline config has its own lease; another config of the name gives back first", async () => {
  const { world, node } = await leased();
  const held = world.unspent;
  expect(held).toBeGreaterThan(0);
  await node.limit("hot", { config: { ...config, rate: 50, capacity: 100 } });
  await world.settle();
  expect((await world.node(false).getValue("hot")).value).toBe(89);
});

test("after another config of a name, reset still drops the leased tokens", async () => {
  const { world, node } = await leased();
  const other = { config: { ...config, rate: 50, capacity: 100 } };
  for (let i = 0; i < 10; i++) await node.limit("hot", other);
  await world.settle();
  await node.reset("hot", other);
  expect((await node.limit("hot", { ...other, count: 100 })).ok).toBe(true);
  expect((await node.limit("hot", other)).ok).toBe(false);
});

test("release returns all leased tokens", async () => {
  const { world, node } = await leased();
  expect((await world.node(false).getValue("hot")).value).toBeLessThan(90);
  await node.release();
  expect((await world.node(false).getValue("hot")).value).toBe(90);
  await defineLimits({ hot: config }).release();
});

test("release returns tokens that calls lease while earlier ones return", async () => {
  const world = new World({ kind: "token bucket", rate: 10_000, period: "1h" }, () => 2);
  const node = world.node({ ahead: 1000 });
  let ended = false;
  const repeat = async (call: () => Promise<unknown>) => {
    while (!ended) await call();
  };
  // Each call follows the one before at once, also where that waited for the refill that a reservation waits for.
  const loops = [1, 2, 3, 5].map((count) => repeat(() => world.limit(node, { count })));
  loops.push(repeat(() => node.limit("hot", { count: 0, reserve: true })));
  await world.pass(200);
  ended = true;
  await world.pass(20);
  await Promise.all(loops);
  const released = node.release();
  await world.pass(20);
  await released;
  expect(world.granted).toBeGreaterThan(100);
  expect(world.unspent).toBe(0);
});

test("release returns the tokens of a refill that starts when the one that it waits for ends", async () => {
  const world = new World({ kind: "token bucket", rate: 10_000, period: "1h" }, () => 2);
  const node = world.node({ ahead: 1000 });
  const next: Promise<unknown>[] = [];
  // Right after its decision, while the refill that brought it is about to end.
  const first = node.limit("hot").then(() => next.push(node.limit("hot", { count: 50 }), node.release()));
  await world.pass(30);
  await first;
  expect(await next[0]).toMatchObject({ ok: true });
  await next[1];
  expect(world.lent).toBe(51);
});

test("during an outage leased tokens are spent, then onStoreError decides; afterwards the store is used again", async () => {
  const { world, node } = await leased();
  const held = world.unspent;
  world.down = true;
  for (let i = 0; i < held; i++) expect(await world.limit(node)).toMatchObject({ ok: true });
  expect(await world.limit(node)).toMatchObject({ ok: false, degraded: true });
  world.down = false;
  expect((await world.limit(node)).ok).toBe(true);
});

test("leases are kept for at most maxKeys keys", async () => {
  const world = new World(config);
  const node = world.node({ maxKeys: 10 });
  for (let key = 0; key < 200; key++) {
    for (let i = 0; i < 5; i++) await world.limit(node, { key: `k${key}` });
  }
  await world.settle();
  // Evicted leases gave their tokens back: of 190 keys only the spent tokens are missing.
  let out = 0;
  for (let key = 0; key < 190; key++) {
    const { value } = await world.node(false).getValue("hot", { key: `k${key}` });
    if (value !== 95) out++;
  }
  expect(out).toBeLessThanOrEqual(10);
});

test("the default is 200 ms ahead, half of the store's tokens, an expiry of 10 times ahead, and 10,000 keys", () => {
  const defaults = { ahead: 200, share: 0.5, expiry: 2000, maxKeys: 10_000 };
  expect(checkLease(true)).toEqual(defaults);
  expect(checkLease({})).toEqual(defaults);
  expect(checkLease({ ahead: "1s" })).toEqual({ ...defaults, ahead: 1000, expiry: 10_000 });
});

const never = (): Promise<never> => Promise.reject(new Error("called"));

describe("invalid settings are refused without a store call", () => {
  const store = (lease: unknown) => ({ ...transactional({ name: "far", transaction: never }), lease: lease as true });

  test.each([
    [7, "`lease` must be true, false or an object with ahead, share, expiry and maxKeys; got 7"],
    [{ ahead: 0 }, '`ahead` must be an integer of ms from 1 to 60000, or a string such as "30s"; got 0'],
    [{ share: 1.5 }, "`share` must be a fraction above 0 and up to 1; got 1.5"],
    [
      { ahead: 500, expiry: 499 },
      '`expiry` must be an integer of ms from 500 to 3600000, or a string such as "30s"; got 499',
    ],
    [{ expiry: null }, '`expiry` must be an integer of ms from 200 to 3600000, or a string such as "30s"; got null'],
    [{ maxKeys: 0.5 }, "`maxKeys` must be an integer from 1 to 1000000; got 0.5"],
    [{ aheda: 1 }, "`aheda` must be absent: lease has ahead, share, expiry, maxKeys; got 1"],
  ])("%j", (lease, message) => {
    expect(() => defineLimits({ hot: config }, { store: store(lease) })).toThrow(message);
  });

  test("a limit with shards is refused", async () => {
    const message =
      '`shards` must be 1 in the limit "hot", whose store leases: leases spread a hot key by themselves; got 4';
    expect(() => defineLimits({ hot: { ...config, shards: 4 } }, { store: store(true) })).toThrow(message);
    const limits = defineLimits({ hot: config }, { store: store(true) });
    expect(() => limits.limit("hot", { config: { ...config, shards: 4 } })).toThrow(message);
  });
});
