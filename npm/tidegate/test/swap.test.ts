/** Atomic steps by compare-and-swap. */
import { expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { shardingBy } from "../src/limit/shards.ts";
import { SLACK } from "../src/stores/steps.ts";
import { bucket, call, limit, NOW, other, parts, table } from "./swap-table.ts";

/** Calls on a key that all have, and on one of their own. */
const both = (key: string) => [call(), { ...call("take", key), limit: other }];

test("concurrent calls on a key share one read and one write; the next call has its own", async () => {
  const { store, reads, changes, rows } = table();
  const all = await Promise.all(Array.from({ length: 12 }, () => store.decide(call(), NOW)));
  expect(all.filter(({ ok }) => ok)).toHaveLength(10);
  expect([reads, changes.length]).toEqual([[["one:k"]], 1]);
  expect(rows.get("one:k")).toBe(`0 ${NOW}`);
  expect((await store.decide(call(), NOW)).ok).toBe(false);
  expect([reads.length, changes.length]).toEqual([2, 1]);
});

test("a step takes at most 1000 calls, so that a burst is decided in parts", async () => {
  const { store, changes } = table();
  const all = await Promise.all(Array.from({ length: 2500 }, () => store.decide(call("charge"), NOW)));
  expect(all.at(-1)?.value).toBe(-2490);
  expect(changes).toHaveLength(3);
});

test("a key that others write all the time does not keep calls from other keys", async () => {
  const { store, database } = table();
  const { swap } = database;
  database.swap = async (some, ...rest) => some[0]?.id !== "one:hot" && swap(some, ...rest);
  const limits = defineLimits({ one: bucket }, { store, timeout: 20, log: false });
  vi.useFakeTimers();
  for (let i = 0; i < 10; i++) {
    const hot = limits.limit("one", { key: "hot" });
    await vi.advanceTimersByTimeAsync(20);
    expect((await hot).cause).toMatchObject({ scope: "key" });
  }
  expect((await limits.limit("one", { key: "other" })).degraded).toBeUndefined();
});

test.each([
  ["entries", "key", undefined],
  ["database", "store", true],
] as const)(
  "busy %s until the deadline: an error of scope %s, and calls on other keys: degraded %s",
  async (busy, scope, degraded) => {
    const { store, database } = table({ busy: () => busy });
    const { swap } = database;
    database.swap = (some, ...rest) =>
      some[0]?.id === "one:hot" ? Promise.reject(new Error("throttled")) : swap(some, ...rest);
    const limits = defineLimits({ one: bucket }, { store, timeout: 20, log: false });
    vi.useFakeTimers();
    for (let i = 0; i < 5; i++) {
      const hot = limits.limit("one", { key: "hot" });
      await vi.advanceTimersByTimeAsync(20);
      expect((await hot).cause).toMatchObject({ scope, message: expect.stringContaining("throttled") });
    }
    expect((await limits.limit("one", { key: "other" })).degraded).toBe(degraded);
  },
);

test.each(["stays out", "is aborted"])(
  "a request that %s at the deadline of a busy key is of that key alone",
  async (ending) => {
    const { store, database } = table({ swap: async () => false });
    const { read } = database;
    let reads = 0;
    database.read = (ids, until) => {
      if (++reads % 2 === 1 || ids[0] !== "one:hot") return read(ids, until);
      const rest = ending === "is aborted" ? until - performance.now() : 60_000;
      return new Promise((_, reject) => setTimeout(reject, rest, new Error("aborted")));
    };
    const limits = defineLimits({ one: bucket }, { store, timeout: 20, log: false });
    vi.useFakeTimers();
    for (let i = 0; i < 6; i++) {
      const hot = limits.limit("one", { key: "hot" });
      await vi.advanceTimersByTimeAsync(20);
      expect((await hot).cause).toMatchObject({
        scope: "key",
        message: expect.stringContaining("not stored in 1 attempt"),
      });
    }
  },
);

test("no pause ends at the deadline or after it, however long those before were", async () => {
  const { store } = table({ swap: async () => false });
  const limits = defineLimits({ one: bucket }, { store, timeout: 20, log: false });
  vi.useFakeTimers();
  // As parts of 2, 4, 8, 16 and 32 ms: the last ends a part of a ms before the deadline, which no timer does.
  const parts = [0.95, 0.975, 0.9875, 0.5, 0.01];
  vi.spyOn(Math, "random").mockImplementation(() => parts.shift() ?? 0);
  const busy = limits.limit("one");
  await vi.advanceTimersByTimeAsync(20);
  expect((await busy).cause).toMatchObject({ scope: "key" });
});

test("calls that only waited for earlier ones on their key are no sign of a store that works", async () => {
  const { store, database } = table();
  const { read } = database;
  database.read = (ids, until) => (ids[0] === "one:hung" ? new Promise(() => {}) : read(ids, until));
  void store.decide(call("take", "hung"), NOW, { at: performance.now() + 50 }).catch(() => {});
  // The step begins after the calls of this turn.
  await undefined;
  await undefined;
  const queued = store.decide(call("take", "hung"), NOW, { at: performance.now() + 20 });
  await expect(queued).rejects.toMatchObject({ scope: "key", cause: { answered: false } });
});

test("calls on other keys do not wait for each other's step", async () => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { store, database } = table();
  const { read } = database;
  database.read = async (ids, until) => {
    if (ids[0] === "one:slow") await held;
    return read(ids, until);
  };
  const slow = store.decide(call("take", "slow"), NOW);
  expect((await store.decide(call("take", "fast"), NOW)).ok).toBe(true);
  release();
  expect((await slow).ok).toBe(true);
});

test("a burst on many keys has 128 steps under way, and each that ends begins another", async () => {
  const held: (() => void)[] = [];
  const { store, database } = table();
  const { read } = database;
  database.read = async (ids, until) => {
    await new Promise<void>((resolve) => held.push(resolve));
    return read(ids, until);
  };
  const all = Promise.all(Array.from({ length: 300 }, (_, i) => store.decide(call("take", `${i}`), NOW)));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  expect(held).toHaveLength(128);
  held[5]?.();
  await turn();
  expect(held).toHaveLength(129);
  for (let i = 0; i < 300; i++) {
    held[i]?.();
    if (i % 100 === 0) await turn();
  }
  expect((await all).every(({ ok }) => ok)).toBe(true);
  // A failed step frees its place, too.
  database.read = async () => Promise.reject(new Error("down"));
  const failing = Array.from({ length: 300 }, (_, i) => store.decide(call("take", `${i}`), NOW).catch(() => "failed"));
  expect(new Set(await Promise.all(failing))).toEqual(new Set(["failed"]));
  database.read = read;
  expect((await store.decide(call("take", "after"), NOW)).ok).toBe(true);
});

test("concurrent calls of limitAll that have a key in common share one read and one write, all or nothing", async () => {
  const { store, reads, changes, rows } = table();
  const all = await Promise.all(Array.from({ length: 12 }, (_, i) => store.decideAll(both(`${i}`), NOW)));
  expect(all.map(({ ok }) => ok)).toEqual([...Array(10).fill(true), false, false]);
  expect([reads.length, changes.length]).toEqual([1, 1]);
  expect(rows.get("one:k")).toBe(`0 ${NOW}`);
  expect([rows.get("other:9"), rows.get("other:10")]).toEqual([`9 ${NOW}`, undefined]);
});

test("a step that calls of limitAll share has at most 100 rows", async () => {
  const { store, changes } = table();
  const calls = Array.from({ length: 100 }, (_, i) =>
    store.decideAll([call("charge"), { ...call("take", `${i}`), limit: other }], NOW),
  );
  expect((await Promise.all(calls)).every(({ ok }) => ok)).toBe(true);
  expect(changes.map((some) => some.length)).toEqual([100, 2]);
});

test("calls on the same keys share a step, however many these are", async () => {
  const { store, changes } = table();
  const calls = Array.from({ length: 101 }, (_, i) => call("take", `${i}`));
  await Promise.all([store.decideAll(calls, NOW), store.decideAll(calls, NOW)]);
  expect(changes).toHaveLength(1);
});

test("a call on the keys of two steps that are still to begin is in one after both", async () => {
  const { store, reads } = table();
  const calls = [call("take", "a"), call("take", "b")];
  const [a, b] = calls.map((one) => store.decide(one, NOW));
  const after = store.decideAll(calls, NOW);
  const last = store.decide(call("take", "b"), NOW);
  expect((await Promise.all([a, b, last])).map((decision) => decision?.value)).toEqual([9, 9, 7]);
  expect((await after).decisions.map(({ value }) => value)).toEqual([8, 8]);
  expect(reads).toEqual([["one:a"], ["one:b"], ["one:a", "one:b"]]);
});

test("a row that is no state fails those calls of limitAll alone that are on it", async () => {
  const { store, rows } = table();
  rows.set("other:1", "garbage");
  const all = await Promise.allSettled(["0", "1", "2"].map((key) => store.decideAll(both(key), NOW)));
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(rows.get("one:k")).toBe(`8 ${NOW}`);
});

test("a read that fails for the keys of some calls that share a step fails those alone; a write is not repeated", async () => {
  const { store, database, rows } = table();
  const { read } = database;
  database.read = async (ids, until) => {
    // As a MongoDB that has no transactions.
    if (ids.length > 1) throw new Error("not permitted");
    return read(ids, until);
  };
  const all = await Promise.allSettled([
    store.decide(call(), NOW),
    store.decideAll(both("own"), NOW),
    store.decide(call(), NOW),
  ]);
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(rows.get("one:k")).toBe(`8 ${NOW}`);
  database.read = read;
  const { swap } = database;
  let swaps = 0;
  database.swap = async (...write) => {
    swaps++;
    await swap(...write);
    throw new Error("the connection ended");
  };
  const unanswered = [store.decide(call(), NOW), store.decideAll(both("own"), NOW)];
  expect((await Promise.allSettled(unanswered)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([swaps, rows.get("one:k"), rows.get("other:own")]).toEqual([1, `6 ${NOW}`, `9 ${NOW}`]);
});

test("a step waits for those before it on its keys", async () => {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const { store, database } = table();
  const { read } = database;
  database.read = async (ids, until) => {
    begun.push(ids.join());
    await new Promise<void>((resolve) => ends.push(resolve));
    return read(ids, until);
  };
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
  const first = store.decide(call(), NOW);
  await turn();
  const both = store.decideAll([call(), { ...call(), limit: other }], NOW);
  await turn();
  expect(begun).toEqual(["one:k"]);
  ends.shift()?.();
  expect((await first).ok).toBe(true);
  await turn();
  const last = store.decide({ ...call(), limit: other }, NOW);
  await turn();
  expect(begun).toEqual(["one:k", "one:k,other:k"]);
  ends.shift()?.();
  expect((await both).ok).toBe(true);
  await turn();
  ends.shift()?.();
  expect((await last).ok).toBe(true);
  expect(begun).toEqual(["one:k", "one:k,other:k", "other:k"]);
});

test("a step that lost is repeated on what is stored then", async () => {
  const { store, rows, reads, database } = table();
  const { swap } = database;
  let first = true;
  database.swap = (changes, ...rest) => {
    if (first) rows.set("one:k", `3 ${NOW}`);
    first = false;
    return swap(changes, ...rest);
  };
  expect(await store.decide(call(), NOW)).toMatchObject({ ok: true, value: 2 });
  expect(reads).toHaveLength(2);
});

test("an error after which nothing was done is repeated; any other is every call's of the step", async () => {
  const busy = new Error("busy");
  const { store, database } = table({ busy: (error) => (error === busy ? "database" : undefined) });
  const { read } = database;
  const errors = [busy, busy];
  database.read = (ids, until) => {
    const error = errors.shift();
    return error === undefined ? read(ids, until) : Promise.reject(error);
  };
  expect((await store.decide(call(), NOW)).value).toBe(9);
  errors.push(new Error("gone"));
  const both = await Promise.allSettled([store.decide(call(), NOW), store.decide(call(), NOW)]);
  for (const one of both) expect(one).toMatchObject({ status: "rejected", reason: { scope: "store" } });
  expect(await store.getValue(limit, "k", NOW)).toEqual({ value: 9, ts: NOW });
});

test.each([
  ["whose connection was reset is sent again, once", Object.assign(new Error("read"), { code: "ECONNRESET" }), 2],
  ["whose error wraps that one, too", new Error("query failed", { cause: { code: "EPIPE" } }), 2],
  ["that may be sent again, says the database, too", new Error("500"), 2],
  ["that fails otherwise is not sent again", new Error("denied"), 1],
])("a read %s", async (_, error, times) => {
  let reads = 0;
  const { store, database } = table({ readsAgain: (failed) => failed === error && error.message === "500" });
  database.read = () => {
    reads++;
    return Promise.reject(error);
  };
  await expect(store.decide(call(), NOW)).rejects.toMatchObject({ cause: error });
  expect(reads).toBe(times);
});

test("a row that is no state fails the calls on it, and a reset in the same step is done", async () => {
  const { store, rows } = table();
  rows.set("one:k", "garbage");
  const failed = { status: "rejected", reason: expect.objectContaining({ scope: "key" }) };
  const calls = [store.decide(call(), NOW), store.reset(limit, "k"), store.decide(call(), NOW)];
  expect(await Promise.allSettled(calls)).toMatchObject([
    failed,
    { status: "fulfilled" },
    { status: "fulfilled", value: { value: 9 } },
  ]);
  expect(rows.get("one:k")).toBe(`9 ${NOW}`);
});

test("limitAll reads its keys at one time, writes both, and compares what it only reads", async () => {
  const { store, reads, changes } = table();
  const calls = [call("take", "k", 4), { ...call("take", "k", 0), limit: other }];
  expect((await store.decideAll(calls, NOW)).ok).toBe(true);
  expect(reads).toEqual([["one:k", "other:k"]]);
  expect(changes[0]).toMatchObject([
    { id: "one:k", write: { state: { value: 6, ts: NOW }, dropIn: 400 + SLACK } },
    { id: "other:k", seen: { version: undefined }, write: undefined },
  ]);
});

test("a denied limitAll has the latest of its retry times, and none where a wait does not help one of its calls", async () => {
  const { store } = table();
  const both = (one: number, two: number) =>
    store.decideAll([call("take", "k", one), { ...call("take", "k", two), limit: other }], NOW);
  expect((await both(10, 10)).ok).toBe(true);
  expect(await both(2, 5)).toMatchObject({ ok: false, retryAt: NOW + 500, retryAfter: 500 });
  expect(await both(2, 11)).toMatchObject({ ok: false, retryAt: undefined, retryAfter: undefined });
});

test("a check on several rows, read one by one, is compared; on one row it is not", async () => {
  const { store, reads, changes } = table({ sharding: shardingBy(() => 0) });
  await store.decide(call("check"), NOW);
  expect(changes).toEqual([]);
  await store.decide({ ...call("check"), limit: parts }, NOW);
  expect(reads.slice(1)).toEqual([["parts/0:k"], ["parts/1:k"]]);
  expect(changes).toMatchObject([[{ write: undefined }, { write: undefined }]]);
});

test("calls on shards of their own read inside the step, limitAll too", async () => {
  const { store, reads } = table({ sharding: shardingBy(() => 0) });
  await store.decideAll([call(), { ...call(), limit: parts }], NOW);
  expect(reads).toEqual([["one:k"], ["parts/0:k"], ["parts/1:k"]]);
});

test("a reset reads nothing, unless the database compares every entry", async () => {
  const plain = table();
  await plain.store.reset(limit, "k");
  expect([plain.reads, plain.changes]).toEqual([
    [],
    [[{ id: "one:k", seen: undefined, write: { state: null, dropIn: SLACK } }]],
  ]);
  const comparing = table({ comparesAll: true });
  comparing.rows.set("one:k", `3 ${NOW}`);
  await comparing.store.reset(limit, "k");
  expect(comparing.reads).toEqual([["one:k"]]);
  expect(comparing.changes).toMatchObject([[{ seen: { version: `3 ${NOW}` }, write: { state: null } }]]);
});

test("a state is kept for a minute longer than it takes to fill up, at a clock that is behind too", async () => {
  const { store, changes } = table();
  await store.decide(call("take", "k", 5), NOW);
  await store.decide(call("take", "k", 2), NOW - 100);
  expect(changes.flat().map(({ write }) => write?.dropIn)).toEqual([500 + SLACK, 800 + SLACK]);
});
