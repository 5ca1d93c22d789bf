import { createHash } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { Limit } from "tidegate/store";
import { redis, type RestRedisLike } from "tidegate/redis";
import { nameAndKeyOf, redisKeyOf, slotOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import { SCRIPT, SCRIPT_SHA1 } from "../../../npm/tidegate/src/stores/redis/script.ts";
import { ODD_KEYS } from "../../../npm/tidegate/src/testing/keys.ts";
import { restLike } from "./clients.ts";
import { callOn, client, limit, scriptCalls, server, store, take, replaceStore, withServer } from "./fixture.ts";
import { Random } from "../random.ts";
import { RedisServer } from "./server.ts";

withServer();

test("the digest is the script's", () => {
  expect(SCRIPT_SHA1).toBe(createHash("sha1").update(SCRIPT).digest("hex"));
});

describe("keys", () => {
  test("with tags too, distinct names and keys stay distinct", () => {
    const tags = [undefined, "", "a", "a}", "{a", "%", "%7d", "a}n:{b", "\ud800", "\udc00"];
    const places = tags.flatMap((tag) =>
      ODD_KEYS.flatMap((key) => [undefined, 0, 1].map((shard) => redisKeyOf("p:", "n", shard, key, tag))),
    );
    expect(new Set(places).size).toBe(places.length);
    expect(new Set(places.map((place) => Buffer.from(place).toString("hex"))).size).toBe(places.length);
  });

  test("a name and a key are read back from the server's key, and of a shard none are", () => {
    const read = (shard: number | undefined, key: string | undefined, tag?: string) =>
      nameAndKeyOf("p:", redisKeyOf("p:", "n", shard, key, tag));
    for (const key of [undefined, ...ODD_KEYS]) {
      for (const tag of [undefined, "", "a}"]) expect(read(undefined, key, tag)).toEqual({ name: "n", key });
      expect(read(1, key)).toBeUndefined();
    }
    expect(nameAndKeyOf("q:", redisKeyOf("p:", "n", undefined, "k", undefined))).toBeUndefined();
  });

  test("a tag alone decides the slot, and a brace in a key does not", async () => {
    const slots = (tag: string) => new Set(ODD_KEYS.map((key) => slotOf(redisKeyOf("p:", "n", 3, key, tag))));
    expect(slots("tenant").size).toBe(1);
    expect(slots("").size).toBe(1);
    expect(
      new Set(["{a}1", "{a}2", "{a}3"].map((key) => slotOf(redisKeyOf("p:", "n", undefined, key, undefined)))).size,
    ).toBe(3);
  });

  test("slots are the server's", async () => {
    await using cluster = await RedisServer.start("--cluster-enabled", "yes");
    const probe = cluster.client();
    const tagged = ["{user1000}.following", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}"];
    const places = [...ODD_KEYS.map(String), ...tagged].filter((key) => !/\p{Surrogate}/u.test(key));
    for (const place of places) expect(slotOf(place), place).toBe(await probe.cluster("KEYSLOT", place));
    probe.disconnect();
  });
});

describe("what is written", () => {
  const place = "tidegate:api:u";
  const held = async () => [(await client.getBuffer(place))?.toString("hex"), await client.pexpiretime(place)];

  test("denials, checks and reads leave value and TTL as they are, to the bit", async () => {
    replaceStore(redis(client, { rememberDenials: 0 }));
    await take("u", 7);
    const before = await held();
    await client.config("RESETSTAT");
    expect((await take("u", 5)).ok).toBe(false);
    expect((await store.decide(callOn("check", "u", 2), undefined)).ok).toBe(true);
    await store.decide(callOn("check", "u", 9, limit, true), undefined);
    await store.getValue(limit, "u", undefined);
    await take("u", 0);
    await store.decide(callOn("give", "u", 0), undefined);
    await store.decide(callOn("charge", "u", 0), undefined);
    const all = await store.decideAll([callOn("take", "u", 2), callOn("take", "u", 9)], undefined);
    expect(all.ok).toBe(false);
    expect(await held()).toEqual(before);
    // Not even the same again, which replicas would receive.
    expect(await client.info("commandstats")).not.toMatch(/cmdstat_(set|del|pexpire|persist):/);
  });

  test("calls of one turn are carried out in their order, whichever clock they pass: a take after a reset is not forgotten", async () => {
    const now = 1_763_640_000_000;
    await store.decide(callOn("take", "u", 4), now);
    const [, , taken] = await Promise.all([
      store.decide(callOn("take", "other"), now),
      store.reset(limit, "u"),
      store.decide(callOn("take", "u"), now),
    ]);
    expect(taken.value).toBe(9);
    expect((await store.getValue(limit, "u", now)).value).toBe(9);
  });

  test("a key expires when it is full: not one ms before, and at most two after", async () => {
    const random = new Random(1);
    for (let i = 0; i < 300; i++) {
      const rate = Math.exp(random.next() * 14);
      const period = Math.ceil(Math.exp(random.next() * 25));
      const of = new Limit(
        "ttl",
        random.chance(0.5) ? { kind: "token bucket", rate, period } : { kind: "fixed window", rate, period },
      );
      const decision = await store.decide(callOn("take", `${i}`, rate * random.next(), of), undefined);
      const at = await client.pexpiretime(`tidegate:ttl:${i}`);
      if (at === -2) expect(decision.resetAt).toBeLessThanOrEqual(Date.now() + 1);
      else {
        expect(at).toBeGreaterThanOrEqual(decision.resetAt);
        expect(at).toBeLessThanOrEqual(decision.resetAt + 2);
      }
    }
    // The last 50 ns of the wait are less than the clock's double can have.
    const odd = new Limit("odd", { kind: "token bucket", rate: 1, period: 1000, capacity: 5.00000005 });
    const { resetAt } = await store.decide(callOn("take", "u", odd.policy.capacity, odd), undefined);
    expect(await client.pexpiretime("tidegate:odd:u")).toBeGreaterThanOrEqual(resetAt);
  });

  test("whatever wrote it, a key expires when it is full, an hour later by a clock that was passed in, and a full one is deleted", async () => {
    const { resetAt } = await store.decide(callOn("charge", "u", 4), undefined);
    const [, at] = await held();
    expect(at).toBeGreaterThanOrEqual(resetAt);
    expect(at).toBeLessThanOrEqual(resetAt + 2);
    await store.decide(callOn("give", "u", 4), undefined);
    expect(await held()).toEqual([undefined, -2]);
    const [before] = await client.time();
    const passed = await store.decide(callOn("take", "u", 4), 1000);
    const left = Number((await held())[1]) - Number(before) * 1000;
    // To a minute: the server's clock went on meanwhile.
    expect(left - (passed.resetAt - passed.now) - 3_600_000).toBeGreaterThanOrEqual(0);
    expect(left - (passed.resetAt - passed.now) - 3_600_000).toBeLessThan(60_000);
  });

  test("the next request on a full window that has not expired opens one", async () => {
    const window = new Limit("window", { kind: "fixed window", rate: 2, period: 60_000, start: "first request" });
    const state = Buffer.alloc(16);
    const [seconds] = await client.time();
    state.writeDoubleLE(Number(seconds) * 1000 - 90_000, 8);
    await client.set("tidegate:window:u", state, "PX", 3_600_000);
    const { value, ts, now } = await take("u", 1, window);
    expect([value, ts]).toEqual([1, now]);
    const written = (await client.getBuffer("tidegate:window:u")) as Buffer;
    expect([written.readDoubleLE(0), written.readDoubleLE(8)]).toEqual([1, now]);
  });

  test("idle keys expire", async () => {
    const fast = new Limit("fast", { kind: "token bucket", rate: 100, period: 1000 });
    await Promise.all(Array.from({ length: 50 }, (_, i) => take(`${i}`, 3, fast)));
    expect(await client.info("commandstats"), "were written").toMatch(/cmdstat_set:calls=50,/);
    await expect.poll(() => client.dbsize(), { timeout: 60_000 }).toBe(0);
  });

  test("the server's clock decides, not this process's", async () => {
    const now = Date.now;
    const [seconds] = await client.time();
    try {
      Date.now = () => 1_000;
      const early = await take("clock", 6);
      Date.now = () => now() + 1e9;
      const late = await redis(client).decide(callOn("take", "clock", 6), undefined);
      expect([early.ok, late.ok]).toEqual([true, false]);
      expect(Math.abs(early.now - Number(seconds) * 1000)).toBeLessThan(10_000);
    } finally {
      Date.now = now;
    }
  });
});

describe("corrupt state", () => {
  const nan = Buffer.alloc(16);
  nan.writeDoubleLE(Number.NaN, 0);
  const infinite = Buffer.alloc(16);
  infinite.writeDoubleLE(Number.POSITIVE_INFINITY, 8);
  const kinds: [string, () => Promise<unknown>, RegExp][] = [
    ["of another type", () => client.hset("tidegate:api:bad", "a", "b"), /corrupt state: a state must be a string/],
    ["too short", () => client.set("tidegate:api:bad", "12345678"), /corrupt state: a state must be 16 bytes/],
    ["text", () => client.set("tidegate:api:bad", "10 1763640000000.5"), /corrupt state: a state must be 16 bytes/],
    ["empty", () => client.set("tidegate:api:bad", ""), /corrupt state: a state must be 16 bytes/],
    ["NaN", () => client.set("tidegate:api:bad", nan), /two finite little-endian doubles/],
    ["infinite", () => client.set("tidegate:api:bad", infinite), /two finite little-endian doubles/],
  ];

  test.each(kinds)(
    "%s: every call gives an error with the identity, and the key is not changed",
    async (_, write, message) => {
      await write();
      const dump = await client.dumpBuffer("tidegate:api:bad");
      const identity = { name: "StoreError", code: "TIDEGATE_STORE", store: "redis", identity: "api:bad" };
      for (const op of ["take", "check", "give", "charge"] as const) {
        const error = await store.decide(callOn(op, "bad"), undefined).catch((caught) => caught);
        expect(error).toMatchObject({ ...identity, operation: op });
        expect(error.message).toMatch(message);
      }
      await expect(store.getValue(limit, "bad", undefined)).rejects.toMatchObject(identity);
      await expect(store.decideAll([callOn("take", "good"), callOn("take", "bad")], undefined)).rejects.toMatchObject(
        identity,
      );
      expect(await client.exists("tidegate:api:good")).toBe(0);
      // In one script call with others, only the bad one fails.
      const settled = await Promise.allSettled([take("a"), take("bad"), take("b"), take("bad")]);
      expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
      expect(await client.dumpBuffer("tidegate:api:bad")).toEqual(dump);
      await store.reset(limit, "bad");
      expect((await take("bad", 10)).ok).toBe(true);
    },
  );
});

describe("round trips", () => {
  test("concurrent calls are one script call, each with its own decision", async () => {
    await take("warm");
    await client.config("RESETSTAT");
    const calls = Array.from({ length: 30 }, (_, i) => take(`k${i % 10}`, 4));
    const late = Promise.resolve().then(async () => {
      await null;
      return take("k0", 4);
    });
    const decisions = await Promise.all([
      ...calls,
      late,
      store.getValue(limit, "k1", undefined),
      store.decideAll([callOn("take", "k2"), callOn("take", "k3")], undefined),
    ]);
    expect(decisions.slice(0, 31).map((decision) => (decision as { ok: boolean }).ok)).toEqual([
      ...Array(20).fill(true),
      ...Array(11).fill(false),
    ]);
    expect(await scriptCalls()).toBe(1);
  });

  test("each operation is one script call", async () => {
    await take("warm");
    const sharded = new Limit("sharded", { kind: "token bucket", rate: 100, period: 60_000, shards: 8 });
    for (const of of [limit, sharded]) {
      for (const run of [
        () => take("one", 1, of),
        () => take("one", of.policy.capacity, of),
        () => store.decide(callOn("check", "one", 1, of), undefined),
        () => store.decide(callOn("give", "one", 1, of), undefined),
        () => store.decide(callOn("charge", "one", 1, of), undefined),
        () => store.getValue(of, "one", undefined),
        () => store.decideAll([callOn("take", "one", 1, of), callOn("take", "two", 1, of)], undefined),
        () => store.reset(of, "one"),
      ]) {
        await client.config("RESETSTAT");
        await run();
        expect(await scriptCalls(), `${of.name} ${run}`).toBeLessThanOrEqual(1);
      }
    }
  });

  test("a request above the capacity makes no round trip", async () => {
    const decision = await take("never", 11);
    expect(decision).toMatchObject({ ok: false, reason: "exceeds capacity", retryAt: undefined, value: 0 });
    expect(await scriptCalls()).toBe(0);
  });
});

describe("SCRIPT FLUSH", () => {
  let flushing: ReturnType<typeof setInterval> | undefined;
  afterEach(() => clearInterval(flushing));

  test("in the middle of load loses nothing and takes nothing twice", async () => {
    const flusher = server.client();
    let flushes = 0;
    flushing = setInterval(() => {
      flushes++;
      void flusher.script("FLUSH");
    }, 5);
    const wide = new Limit("wide", { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 1e6 });
    let granted = 0;
    const until = Date.now() + 1_000;
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        for (let n = 0; Date.now() < until || flushes <= 20 || granted <= 1000; n++)
          if ((await take("load", 1 + ((i + n) % 3), wide)).ok) granted += 1 + ((i + n) % 3);
      }),
    );
    clearInterval(flushing);
    const { value } = await store.getValue(wide, "load", undefined);
    expect(Math.abs(1e6 - granted - value)).toBeLessThan(0.01);
    flusher.disconnect();
  });
});

test("calls of one turn with clocks of their own are decided by these, each in a script call", async () => {
  const times = [1_700_000_000_000, 1_700_000_005_000];
  const decisions = await Promise.all(times.map((now, i) => store.decide(callOn("take", `own ${i}`), now)));
  expect(decisions.map(({ now }) => now)).toEqual(times);
  expect(await scriptCalls()).toBe(2);
});

test("only the server's own error sends a script again, and not a key or a message that quotes its code", async () => {
  let sent = 0;
  let message = "";
  const rest = restLike(client);
  const counting = redis({
    eval: (script, keys, args) => {
      sent++;
      return rest.eval(script, keys, args);
    },
    evalsha: () => Promise.reject(new Error(message)),
  } satisfies RestRedisLike);
  await counting.decide(callOn("take", "sent"), undefined); // the first call sends the script whole
  for (message of ["NOSCRIPT No matching script.", "Command failed: NOSCRIPT No matching script."]) {
    expect((await counting.decide(callOn("take", "sent"), undefined)).ok).toBe(true);
  }
  expect(sent).toBe(3);
  for (message of ["ERR the key NOSCRIPT is too long", "WRONGTYPE of ReplyError: NOSCRIPT"]) {
    await expect(counting.decide(callOn("take", "sent"), undefined)).rejects.toThrow(message);
  }
  expect(sent).toBe(3);
});

test("a fractional clock is floored", async () => {
  const first = await store.decide(callOn("take", "fraction", 10), 1_000.9);
  expect([first.now, first.ts]).toEqual([1_000, 1_000]);
  expect((await store.decide(callOn("take", "fraction"), 360_999.9)).ok).toBe(false);
  expect((await store.decide(callOn("take", "fraction"), 361_000.1)).ok).toBe(true);
});

test("65,536 shards are one bucket: one step takes the whole capacity", { timeout: 60_000 }, async () => {
  const most = new Limit("most", { kind: "token bucket", rate: 2 ** 20, period: 2 ** 40, shards: 65_536 });
  expect((await take("k", 2 ** 20, most)).ok).toBe(true);
  expect((await take("k", 1, most)).ok).toBe(false);
  expect((await store.getValue(most, "k", undefined)).value).toBeLessThan(1);
});

test("a user of an ACL needs six commands", async () => {
  await client.acl("SETUSER", "limited", "on", ">secret", "~tidegate:*", ...COMMANDS);
  const other = server.client({ username: "limited", password: "secret" });
  const limited = redis(other);
  expect((await limited.decide(callOn("take", "acl"), undefined)).remaining).toBe(9);
  expect((await limited.decide(callOn("take", "acl"), undefined)).remaining).toBe(8);
  expect((await limited.decideAll([callOn("take", "acl"), callOn("take", "b")], undefined)).ok).toBe(true);
  expect((await limited.decide(callOn("give", "acl", 10), undefined)).remaining).toBe(10);
  await limited.reset(limit, "acl");
  await client.acl("SETUSER", "limited", "-set");
  const missing = /(NOPERM|can't run this command|ACL).*; its ACL needs \+evalsha .* on the store's keys$/i;
  await expect(limited.decide(callOn("take", "acl"), undefined)).rejects.toThrow(missing);
  await client.acl("SETUSER", "limited", "+set", "-get");
  const error = { name: "StoreError", scope: "store", message: expect.stringMatching(missing) };
  await expect(limited.decide(callOn("take", "acl"), undefined)).rejects.toMatchObject(error);
  other.disconnect();
});
const COMMANDS = ["+evalsha", "+eval", "+time", "+get", "+set", "+del"];

describe("options", () => {
  test.each([
    [{ prefix: "a{b}" }, "`prefix` must be a string without braces"],
    [{ prefix: 1 }, "`prefix` must be"],
    [{ tag: "x" }, "`tag` must be a function"],
    [{ rememberDenials: -1 }, "`rememberDenials` must be an integer of ms from 0 to 60000, or a string"],
    [{ rememberDenials: Number.NaN }, "`rememberDenials`"],
    [{ rememberDenials: 60_001 }, "`rememberDenials`"],
    [{ rememberDenials: "2m" }, "`rememberDenials`"],
    [
      { preffix: "a" },
      '`preffix` must be absent: redis has prefix, tag, rememberDenials, lease; got "a"; did you mean `prefix`?',
    ],
    [null, "`options` must be an object with any of prefix, tag, rememberDenials, lease; got null"],
  ])("%j is refused", (options, message) => {
    expect(() => redis(client, options as never)).toThrow(message);
  });

  test.each([7, null, 7n, Symbol(), {}, Promise.resolve("a")])("a tag must be a string: %s", async (tag) => {
    const store = redis(client, { tag: (() => tag) as never });
    const limits = defineLimits(
      { api: { kind: "token bucket", rate: 10, period: 60_000 } },
      { store, onStoreError: "allow" },
    );
    const calls = [
      () => limits.limit("api", { key: "a" }),
      () => limits.limitAll([{ name: "api", key: "a" }]),
      () => limits.getValue("api", { key: "a" }),
      () => limits.reset("api", { key: "a" }),
    ];
    const message = "`tag` must be a string or undefined, from the function `tag`; got ";
    for (const call of calls) await expect(async () => call()).rejects.toThrow(message);
  });
});
