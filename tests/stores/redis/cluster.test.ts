import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { defineLimits } from "tidegate";
import { type Call, Limit, type Op } from "tidegate/store";
import { redis, type RedisOptions, type RedisStore } from "tidegate/redis";
import { drain, fill } from "../../../npm/tidegate/src/stores/sharded.ts";
import { slotOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import { clustered, type Open } from "./clients.ts";
import { Random } from "../random.ts";
import { RedisCluster } from "./server.ts";

let cluster: RedisCluster;
let probes: Redis[];
beforeAll(async () => {
  cluster = await RedisCluster.start(3, 0);
  probes = cluster.nodes.map((node) => node.client());
});
afterAll(async () => {
  for (const probe of probes) probe.disconnect();
  await cluster.stop();
});
const keys = async () => (await Promise.all(probes.map((probe) => probe.keys("*")))).flat();

/** A thousandth of a token comes back in a minute. */
const HARDLY_ANY = 2 ** 40;
const bucket = (name: string, rate: number, shards: number) =>
  new Limit(name, { kind: "token bucket", rate, period: HARDLY_ANY, maxReserved: 50, shards });
const callOn = (op: Op, limit: Limit, key: string | undefined, count: number, reserve = false): Call => ({
  op,
  limit,
  key,
  count,
  reserve,
});

describe.each(Object.entries(clustered))("%s", (_, make) => {
  let open: Open;
  const store = (options: RedisOptions = {}): RedisStore => redis(open.client, options);
  beforeAll(async () => {
    open = await make(cluster.nodes.map((node) => node.port));
  });
  afterAll(() => open.close());
  beforeEach(() => Promise.all(probes.map((probe) => probe.flushall())));

  test("across slots, an all-or-nothing call is refused before anything is taken", async () => {
    const one = bucket("one", 10, 1);
    const many = bucket("many", 10, 4);
    const error = await store()
      .decideAll([callOn("take", one, "a", 1), callOn("take", one, "b", 1)], undefined)
      .catch((e) => e);
    expect(error).toMatchObject({ code: "TIDEGATE_INPUT", field: "requests" });
    expect(error.message).toBe(
      "`requests` must be about limits of one hash slot: give `redis` a `tag` that they share; got one:a, one:b",
    );
    await expect(store().decideAll([callOn("take", many, "a", 1)], undefined)).rejects.toMatchObject({
      field: "requests",
    });
    expect(await keys()).toEqual([]);
  });

  test("under a tag it is atomic", async () => {
    const tenant = (_name: string, key: string | undefined) => key?.split(":")[0];
    const [one, two, many] = [bucket("one", 10, 1), bucket("two", 5, 1), bucket("many", 20, 4)];
    const tagged = store({ tag: tenant });
    const calls = [callOn("take", one, "t1:a", 1), callOn("take", two, "t1:b", 1), callOn("take", many, "t1:c", 2)];
    const decisions = await Promise.all(Array.from({ length: 20 }, () => tagged.decideAll(calls, undefined)));
    expect(decisions.filter(({ ok }) => ok).length).toBe(5);
    expect(Math.round((await tagged.getValue(one, "t1:a", undefined)).value)).toBe(5);
    expect(Math.round((await tagged.getValue(many, "t1:c", undefined)).value)).toBe(10);
    await expect(tagged.decideAll([calls[0] as Call, callOn("take", two, "t2:b", 1)], undefined)).rejects.toMatchObject(
      {
        field: "requests",
      },
    );
  });

  test("shards spread over the servers", async () => {
    const many = bucket("spread", 1_000, 64);
    for (let i = 0; i < 300; i++) expect((await store().decide(callOn("take", many, "x", 1), undefined)).ok).toBe(true);
    const held = await Promise.all(probes.map((probe) => probe.dbsize()));
    for (const some of held) expect(some).toBeGreaterThan(8);
    expect(Math.abs((await store().getValue(many, "x", undefined)).value - 700)).toBeLessThan(0.01);
    await store().reset(many, "x");
    expect(await keys()).toEqual([]);
  });

  test("any count up to the whole capacity is granted, and nothing beyond it", async () => {
    for (const shards of [2, 3, 7, 30]) {
      const many = bucket(`whole${shards}`, 10, shards);
      expect((await store().decide(callOn("check", many, "x", 10), undefined)).ok).toBe(true);
      expect((await store().decide(callOn("take", many, "x", 10), undefined)).ok).toBe(true);
      expect((await store().decide(callOn("take", many, "x", 0.01), undefined)).ok).toBe(false);
      const reserved = await store().decide(callOn("take", many, "x", 20, true), undefined);
      expect(reserved).toMatchObject({ ok: true, reserved: true });
      expect(reserved.retryAt).toBeGreaterThan(reserved.now);
      expect((await store().decide(callOn("take", many, "x", 30.01, true), undefined)).ok).toBe(false);
      expect((await store().decide(callOn("take", many, "x", 29.99, true), undefined)).ok).toBe(true);
      expect((await store().decide(callOn("charge", many, "x", 7), undefined)).ok).toBe(true);
      expect(Math.abs((await store().getValue(many, "x", undefined)).value + 56.99)).toBeLessThan(0.01);
      const given = await store().decide(callOn("give", many, "x", 60), undefined);
      expect(Math.abs(given.value - 3.01)).toBeLessThan(0.01);
      expect((await store().decide(callOn("give", many, "x", 1e6), undefined)).value).toBeCloseTo(10, 9);
    }
  });

  test("a remembered denial ends at its retryAt, where rounding has left the parts slightly short", async () => {
    const parts = new Limit("parts", { kind: "token bucket", rate: 10, period: 3_600_000, shards: 7 });
    const remembering = store({ rememberDenials: 60_000 });
    const [now, call] = [5000, callOn("take", parts, "x", 5)];
    expect((await remembering.decide(callOn("take", parts, "x", 9.9), now)).ok).toBe(true);
    const { retryAt = 0 } = await remembering.decide(call, now);
    expect(remembering.recall(call, retryAt - 1)).toMatchObject({ ok: false, retryAt });
    expect(remembering.recall(call, retryAt)).toBeUndefined();
    expect((await remembering.decide(call, retryAt)).ok).toBe(true);
  });

  test("whatever interleaves, nothing is minted and nothing lost", { timeout: 300_000 }, async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const random = new Random(seed);
      const shards = 2 + random.below(12);
      const capacity = 100 + random.below(400);
      const many = bucket(`hot${seed}`, capacity, shards);
      const stores = [store({ rememberDenials: 0 }), store({ rememberDenials: 0 }), store()];
      let out = 0;
      const caller = async (own: Random) => {
        for (let n = 0; n < 12; n++) {
          const count = own.chance(0.2) ? capacity / 3 : own.chance(0.5) ? 1 : own.next() * 20;
          const decision = await own.pick(stores).decide(callOn("take", many, "x", count), undefined);
          if (!decision.ok) continue;
          out += count;
          expect(out).toBeLessThanOrEqual(capacity + 0.01);
          if (own.chance(0.3)) {
            // Given back before it is counted as gone, so that the bound above holds at every moment.
            out -= count;
            await own.pick(stores).decide(callOn("give", many, "x", count), undefined);
          }
        }
      };
      await Promise.all(Array.from({ length: 20 }, (_, i) => caller(new Random(seed * 100 + i))));
      const { value } = await store().getValue(many, "x", undefined);
      expect(Math.abs(capacity - out - value), `seed ${seed}, ${shards} shards`).toBeLessThan(0.01);
      // What is left, to the last token, can still be had in one go.
      if (value > 0.02)
        expect((await store().decide(callOn("take", many, "x", value - 0.01), undefined)).ok).toBe(true);
    }
  });
});

test.each(Object.entries(clustered))(
  "%s: while a slot moves, calls on several of its keys fail alone, and take nothing",
  async (_, make) => {
    await Promise.all(probes.map((probe) => probe.flushall()));
    const open = await make(cluster.nodes.map((node) => node.port));
    onTestFinished(() => open.close());
    const store = redis(open.client, { tag: (name) => (name === "beside" ? undefined : "moving") });
    const common = { kind: "token bucket", rate: 100, period: HARDLY_ANY, timeout: 60_000 } as const;
    const limits = defineLimits({ one: common, two: common, beside: common }, { store, log: false });
    const pair = [{ name: "one" }, { name: "two" }] as const;
    expect((await limits.limitAll(pair)).ok).toBe(true);

    const ids = await Promise.all(probes.map((probe) => probe.cluster("MYID")));
    const port = Number(store.nodeOf?.(new Limit("one", common), undefined).split(":")[1]);
    const from = cluster.nodes.findIndex((node) => node.port === port);
    const to = (from + 1) % probes.length;
    const [source, target] = [probes[from] as Redis, probes[to] as Redis];
    const slot = slotOf("{moving}");
    await target.cluster("SETSLOT", slot, "IMPORTING", ids[from] as string);
    await source.cluster("SETSLOT", slot, "MIGRATING", ids[to] as string);
    onTestFinished(async () => {
      await Promise.all(probes.map((probe) => probe.cluster("SETSLOT", slot, "STABLE")));
    });
    await source.migrate("127.0.0.1", cluster.nodes[to]?.port as number, "tidegate:{moving}one", 0, 5000);

    const denied = await Promise.all(Array.from({ length: 8 }, () => limits.limitAll(pair)));
    for (let n = 0; n < 8; n++) denied.push(await limits.limitAll(pair));
    for (const { ok, degraded, cause } of denied) {
      const message = expect.stringContaining("failed: TRYAGAIN");
      expect({ ok, degraded, cause }).toMatchObject({ ok: false, degraded: true, cause: { scope: "key", message } });
    }
    const key = Array.from({ length: 1000 }, (_, n) => `${n}`).find(
      (one) => store.nodeOf?.(new Limit("beside", common), one) === `127.0.0.1:${port}`,
    ) as string;
    expect(await limits.limit("beside", { key })).toMatchObject({ ok: true, remaining: 99 });
    // Each key alone is where the slot's keys have moved to, or still there: also for calls of one turn.
    const [one, pairOfTurn, two, three] = await Promise.all([
      limits.limit("one"),
      limits.limitAll(pair),
      limits.limit("two"),
      limits.limit("one"),
    ]);
    expect([one, two, three]).toMatchObject([98, 98, 97].map((remaining) => ({ ok: true, remaining })));
    expect(pairOfTurn).toMatchObject({ ok: false, cause: { scope: "key" } });
  },
);

test("a cluster client of ioredis 4.16, which has no `isCluster`, takes concurrent calls on several slots", async () => {
  const make = clustered["ioredis Cluster"] as (ports: readonly number[]) => Promise<Open>;
  const open = await make(cluster.nodes.map((node) => node.port));
  onTestFinished(() => open.close());
  const store = redis(Object.assign(open.client, { isCluster: undefined }));
  const keys = Array.from({ length: 20 }, (_, n) => `older ${n}`);
  const decisions = keys.map((key) => store.decide(callOn("take", bucket("one", 10, 1), key, 1), undefined));
  expect((await Promise.all(decisions)).filter(({ ok }) => ok)).toHaveLength(20);
});

test("a count is drained from the fullest and fills the emptiest, to the bit but for rounding", () => {
  const random = new Random(7);
  for (let i = 0; i < 5_000; i++) {
    const values = Array.from({ length: 1 + random.below(20) }, () => (random.next() - 0.3) * 100);
    const there = values.reduce((sum, value) => sum + Math.max(value, 0), 0);
    const count = there * random.next();
    const parts = drain(values, count, 0);
    expect(parts.reduce((sum, [, part]) => sum + part, 0)).toBeCloseTo(count, 9);
    for (const [shard, part] of parts) expect((values[shard] as number) - part).toBeGreaterThanOrEqual(0);
    const filled = fill(values, count, 100);
    for (const [shard, part] of filled) expect((values[shard] as number) + part).toBeLessThanOrEqual(100 + 1e-9);
  }
});
