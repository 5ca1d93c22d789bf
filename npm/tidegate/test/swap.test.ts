/** Atomic steps by compare-and-swap, on a table in memory that counts what it is sent. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { decodeText, encodeText } from "../src/limit/codec.ts";
import { Limit } from "../src/limit/limit.ts";
import type { Call } from "../src/stores/contract.ts";
import { SLACK, storeOf } from "../src/stores/steps.ts";
import { type Change, type Entry, type Swappable, Swaps } from "../src/stores/swap.ts";

type Found = Entry<string | undefined>;

/** Rows of text, which are their own versions. */
function table(options: Partial<Swappable<string | undefined>> = {}) {
  const rows = new Map<string, string>();
  const reads: string[][] = [];
  const changes: (readonly Change<string | undefined>[])[] = [];
  const database: Swappable<string | undefined> = {
    name: "rows",
    async read(ids) {
      reads.push([...ids]);
      return ids.map((id): Found => ({ value: rows.get(id), version: rows.get(id) }));
    },
    decode: (value: string) => decodeText(value),
    async swap(some) {
      changes.push(some);
      if (some.some(({ id, seen }) => seen !== undefined && seen.version !== rows.get(id))) return false;
      for (const { id, write } of some) {
        if (write?.state === null) rows.delete(id);
        else if (write !== undefined) rows.set(id, encodeText(write.state));
      }
      return true;
    },
    ...options,
  };
  const swaps = new Swaps(database);
  const store = storeOf("rows", (...step) => swaps.run(...step));
  return { rows, reads, changes, database, store };
}

const bucket = { kind: "token bucket", rate: 10, period: 1000 } as const;
const limit = new Limit("one", bucket);
const other = new Limit("other", bucket);
const parts = new Limit("parts", { ...bucket, shards: 2 });
const call = (op: Call["op"] = "take", key = "k", count = 1): Call => ({ op, limit, key, count, reserve: false });
const NOW = 5000;

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
  try {
    for (let i = 0; i < 10; i++) {
      const hot = limits.limit("one", { key: "hot" });
      await vi.advanceTimersByTimeAsync(20);
      expect((await hot).cause).toMatchObject({ scope: "key" });
    }
    expect((await limits.limit("one", { key: "other" })).degraded).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});

test("no pause ends at the deadline or after it, however long those before were", async () => {
  const { store } = table({ swap: async () => false });
  const limits = defineLimits({ one: bucket }, { store, timeout: 20, log: false });
  vi.useFakeTimers();
  // As parts of 2, 4, 8, 16 and 32 ms: the last ends a part of a ms before the deadline, which no timer does.
  const parts = [0.95, 0.975, 0.9875, 0.5, 0.01];
  const random = vi.spyOn(Math, "random").mockImplementation(() => parts.shift() ?? 0);
  try {
    const busy = limits.limit("one");
    await vi.advanceTimersByTimeAsync(20);
    expect((await busy).cause).toMatchObject({ scope: "key" });
  } finally {
    random.mockRestore();
    vi.useRealTimers();
  }
});

test("calls that only waited for earlier ones on their key are no sign of a store that works", async () => {
  const { store, database } = table();
  const { read } = database;
  database.read = (ids, until) => (ids[0] === "one:hung" ? new Promise(() => {}) : read(ids, until));
  void store.decide(call("take", "hung"), NOW, performance.now() + 50).catch(() => {});
  // The step begins after the calls of this turn.
  await undefined;
  await undefined;
  const queued = store.decide(call("take", "hung"), NOW, performance.now() + 20);
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
  const last = store.decide({ ...call(), limit: other }, NOW);
  await turn();
  expect(begun).toEqual(["one:k"]);
  for (const one of [first, both, last]) {
    ends.shift()?.();
    expect((await one).ok).toBe(true);
    await turn();
  }
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
  const { store, database } = table({ isBusy: (error) => error === busy });
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
  const { store, reads, changes } = table({ random: () => 0 });
  await store.decide(call("check"), NOW);
  expect(changes).toEqual([]);
  await store.decide({ ...call("check"), limit: parts }, NOW);
  expect(reads.slice(1)).toEqual([["parts/0:k"], ["parts/1:k"]]);
  expect(changes).toMatchObject([[{ write: undefined }, { write: undefined }]]);
});

test("calls on shards of their own read inside the step, limitAll too", async () => {
  const { store, reads } = table({ random: () => 0 });
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

describe("time", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout", "Date"] });
    vi.spyOn(Math, "random").mockReturnValue(0.5);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });
  const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  /** What came of a promise, once that much time has passed. */
  async function within(ms: number, some: Promise<unknown>): Promise<unknown> {
    const result = some.then(
      () => "done",
      (error: Error) => error.message,
    );
    await vi.advanceTimersByTimeAsync(ms);
    return Promise.race([result, Promise.resolve("waits")]);
  }

  test("a call whose deadline has passed is not sent; those of the same step are", async () => {
    const { store, reads } = table();
    const late = store.decide(call(), NOW, performance.now());
    const next = store.decide(call(), NOW, performance.now() + 1);
    await expect(late).rejects.toThrow("the call was not sent: its deadline passed");
    expect((await next).value).toBe(9);
    await expect(store.decide(call(), NOW, performance.now() - 1)).rejects.toThrow("not sent");
    const both = [call(), { ...call(), limit: other }];
    await expect(store.decideAll(both, NOW, performance.now())).rejects.toThrow("not sent");
    expect(reads).toHaveLength(1);
  });

  test("nothing is taken for a call whose deadline passes before the write; the others of its step are decided", async () => {
    const { store, rows, database } = table();
    const { swap } = database;
    // A server that compares its clock when it writes: 20 ms after it is sent, and later 1 ms.
    let ms = 20;
    database.swap = async (changes, until, first) => {
      await after(ms);
      ms = 1;
      return performance.now() < first && swap(changes, until, first);
    };
    const began = performance.now();
    const [soon, later] = [20, 1000].map((deadline) => store.decide(call(), NOW, began + deadline));
    const ended = Promise.allSettled([soon, later]);
    await vi.advanceTimersByTimeAsync(100);
    expect(await ended).toMatchObject([{ status: "rejected" }, { value: { ok: true, value: 9 } }]);
    expect(rows.get("one:k")).toBe(`9 ${NOW}`);
  });

  test("nothing is sent for a call whose deadline passed while its step read", async () => {
    const { store, changes, database } = table();
    const { read } = database;
    database.read = (ids, until) => after(50).then(() => read(ids, until));
    const [soon, later] = [20, 1000].map((ms) => store.decide(call(), NOW, performance.now() + ms));
    const ended = Promise.allSettled([soon, later]);
    await vi.advanceTimersByTimeAsync(200);
    expect(await ended).toMatchObject([{ status: "rejected" }, { value: { ok: true, value: 9 } }]);
    expect(changes).toHaveLength(1);
  });

  test("a step ends at the latest of its deadlines, and what it reads later writes nothing", async () => {
    const { store, changes, database } = table();
    const { read } = database;
    database.read = (ids, until) => after(50).then(() => read(ids, until));
    const began = performance.now();
    const calls = Promise.allSettled([20, 10].map((ms) => store.decide(call(), NOW, began + ms)));
    expect(await within(19, calls)).toBe("waits");
    await vi.advanceTimersByTimeAsync(1);
    const error = { reason: { message: 'rows: take of "one:k" failed: no answer within 20 ms' } };
    expect(await calls).toMatchObject([error, error]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(changes).toEqual([]);
  });

  test.each([
    [10_000, undefined],
    [300, 300],
  ])("a call without a deadline ends after %i ms where `stepTimeout` is %s", async (ms, stepTimeout) => {
    const { store } = table({
      read: () => new Promise(() => {}),
      ...(stepTimeout === undefined ? {} : { stepTimeout }),
    });
    const taken = store.decide(call(), NOW);
    expect(await within(ms - 1, taken)).toBe("waits");
    expect(await within(1, taken)).toContain(`no answer within ${ms} ms`);
    const patient = store.decide(call(), NOW, performance.now() + 1e6);
    expect(await within(ms, patient)).toContain(`no answer within ${ms} ms`);
  });

  test("pauses between attempts double up to 100 ms, and there is none that would end after the deadline", async () => {
    const at: number[] = [];
    const began = performance.now();
    const { store } = table({
      async swap() {
        at.push(performance.now() - began);
        return false;
      },
    });
    const taken = store.decide(call(), NOW, began + 200);
    // Half of 2, 4, 8, … and at most 100 ms, as the random number says.
    const attempts = [0, 1, 3, 7, 15, 31, 63, 113, 163];
    expect(await within(199, taken)).toContain(
      `not stored in ${attempts.length} attempts: others were faster, or the server has no room`,
    );
    expect(at).toEqual(attempts);
  });

  test("the last error of a busy database is in the message", async () => {
    const { store } = table({ swap: () => Promise.reject(new Error("locked")), isBusy: () => true });
    const taken = store.decide(call(), NOW, performance.now() + 4);
    expect(await within(4, taken)).toMatch(/not stored in [23] attempts: locked/);
  });
});
