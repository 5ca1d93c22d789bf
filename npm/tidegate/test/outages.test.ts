/** The scope of a failure: a key, a node of a store, or the store; and what is logged about it. */
import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { rateLimit } from "../src/middleware/fetch.ts";
import { defineLimits, type LimiterOptions, type Log, memory, type State, StoreError } from "../src/index.ts";
import { type AsyncStore, decode, Limit, type SyncStore, transactional } from "../src/stores/index.ts";
import { KeyError } from "../src/stores/failure.ts";
import { NotAState } from "../src/limit/codec.ts";
import { behind } from "./behind.ts";

const bucket = { kind: "token bucket", rate: 1000, period: 60_000 } as const;
const configs = { one: bucket, two: bucket };

/** A store of several nodes: a key's node is its first letter. A node rejects with what `fails` returns. */
function noded(fails: (node: string) => unknown): AsyncStore & { calls: string[] } {
  const states = memory();
  const calls: string[] = [];
  async function on<T>(keys: readonly (string | undefined)[], body: () => T): Promise<T> {
    for (const key of keys) {
      const node = key?.[0] ?? "";
      calls.push(node);
      const failure = fails(node);
      if (failure !== FINE) throw failure;
    }
    return body();
  }
  return {
    name: "noded",
    sync: false,
    calls,
    nodeOf: (_, key) => key?.[0],
    decide: (call, now) => on([call.key], () => states.decide(call, now)),
    decideAll: (calls, now) =>
      on(
        calls.map(({ key }) => key),
        () => states.decideAll(calls, now),
      ),
    reset: (limit, key) => on([key], () => states.reset(limit, key)),
    getValue: (limit, key, now) => on([key], () => states.getValue(limit, key, now)),
  };
}
const FINE = Symbol("fine");
const refused = new Error("connection refused");
const thrown = (error: Error): never => {
  throw error;
};

/** A log that keeps its lines. */
function kept(): Log & { lines: string[]; causes: unknown[] } {
  const [lines, causes]: [string[], unknown[]] = [[], []];
  const error = (message: string, cause: unknown): void => {
    lines.push(message);
    causes.push(cause);
  };
  return { lines, causes, error, info: (message) => void lines.push(message) };
}

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));

describe("a corrupt state", () => {
  const states = new Map<string, Uint8Array | State>();
  const store = transactional({
    name: "rows",
    transaction: (body) =>
      body({
        get: (id) => {
          const found = states.get(id) ?? null;
          return found instanceof Uint8Array ? decode(found) : found;
        },
        set: (id, state) => void states.set(id, state),
        delete: (id) => void states.delete(id),
      }),
  });

  test.each([
    ["bytes that do not decode", new Uint8Array(3)],
    ["numbers that are not finite", { value: Number.NaN, ts: 0 }],
  ])("fails only the calls on its own key: %s", async (_, state) => {
    states.clear();
    states.set("one:bad", state);
    const log = kept();
    const limits = defineLimits(configs, { store, log });
    const keys = Array.from({ length: 200 }, (_, i) => (i % 10 === 0 ? `good${i}` : "bad"));
    for (let turn = 0; turn < 3; turn++) {
      const answers = await Promise.all(keys.map((key) => limits.limit("one", { key })));
      for (const [i, answer] of answers.entries())
        expect(answer.degraded, keys[i]).toBe(keys[i] === "bad" || undefined);
    }
    expect(log.lines).toEqual([expect.stringMatching(/^tidegate: rows: .*"one:bad".*; calls on this key are denied/)]);
    await limits.reset("one", { key: "bad" });
    expect(await limits.limit("one", { key: "bad" })).toMatchObject({ ok: true, value: 999 });
  });
});

test.each([
  ["of one key", new StoreError("corrupt", { store: "noded", operation: "take", identity: "one:k", scope: "key" })],
  ["that `decode` throws", new NotAState("no state")],
])("an error %s is a response of its node: the count of failures restarts", async (_, corrupt) => {
  const failures: unknown[] = [refused, refused, refused, refused, corrupt, refused, refused, refused, refused, FINE];
  const store = noded(() => failures.shift());
  const limits = defineLimits(configs, { store, log: false });
  for (let i = 0; i < 9; i++) expect((await limits.limit("one", { key: "k" })).degraded).toBe(true);
  expect((await limits.limit("one", { key: "k" })).degraded).toBeUndefined();
});

test("a store receives the deadline of each call: the limit's own timeout from now", async () => {
  const deadlines: unknown[] = [];
  const store: AsyncStore = {
    ...noded(() => FINE),
    decide: (_call, _now, deadline) => Promise.reject(void deadlines.push(deadline)),
    decideAll: (_calls, _now, deadline) => Promise.reject(void deadlines.push(deadline)),
    reset: (_limit, _key, deadline) => Promise.resolve(void deadlines.push(deadline)),
    getValue: (_limit, _key, _now, deadline) => Promise.reject(void deadlines.push(deadline)),
  };
  const limits = defineLimits({ one: { ...bucket, timeout: 40 }, two: bucket }, { store, log: false, timeout: 90 });
  const now = performance.now();
  await limits.limit("two", { key: "a" });
  await limits.limit("one", { key: "a" });
  await limits.limitAll([{ name: "one" }, { name: "two" }]);
  await limits.reset("two", { key: "a" });
  await limits.getValue("one", { key: "a" }).catch(() => {});
  expect(deadlines).toEqual([90, 40, 40, 90, 40].map((ms) => ({ at: now + ms })));
});

describe("a failing node", () => {
  test("fails no call on other nodes, and is called ever more rarely", async () => {
    const store = noded((node) => (node === "b" ? refused : FINE));
    const limits = defineLimits(configs, { store, log: false });
    for (let turn = 0; turn < 20; turn++) {
      const keys = ["a1", "b1", "b2", "c1", "b3", "a2"];
      const answers = await Promise.all(keys.map((key) => limits.limit("one", { key })));
      for (const [i, answer] of answers.entries()) {
        expect(answer.degraded, `${keys[i]} in turn ${turn}`).toBe(keys[i]?.startsWith("b") || undefined);
      }
    }
    expect(store.calls.filter((node) => node === "b")).toHaveLength(6);
  });

  test("keeps its own breaker while other nodes succeed", async () => {
    const store = noded((node) => (node === "b" ? refused : FINE));
    const limits = defineLimits(configs, { store, log: false });
    for (let i = 0; i < 50; i++) {
      await limits.limit("one", { key: "b" });
      await limits.limit("one", { key: "a" });
    }
    expect(store.calls.filter((node) => node === "b")).toHaveLength(5);
  });

  test("fails the calls on several nodes that include it, and opens no other breaker", async () => {
    const store = noded((node) => (node === "b" ? refused : FINE));
    const limits = defineLimits(configs, { store, log: false });
    const both = () =>
      limits.limitAll([
        { name: "one", key: "a" },
        { name: "two", key: "b" },
      ]);
    for (let i = 0; i < 20; i++) expect((await both()).degraded).toBe(true);
    expect(
      store.calls.filter((node) => node === "b"),
      "a breaker for the pair",
    ).toHaveLength(5);
    expect((await limits.limit("one", { key: "a" })).degraded).toBeUndefined();
    expect(
      (
        await limits.limitAll([
          { name: "one", key: "a" },
          { name: "two", key: "a2" },
        ])
      ).degraded,
    ).toBeUndefined();
  });

  test("is forgotten after a thousand other failing nodes", async () => {
    let failing = true;
    const store: AsyncStore = { ...noded(() => (failing ? refused : FINE)), nodeOf: (_, key) => key };
    const limits = defineLimits(configs, { store, log: false });
    for (let i = 0; i < 1001; i++) {
      for (let n = 0; n < 5; n++) await limits.limit("one", { key: `${i}` });
    }
    failing = false;
    expect((await limits.limit("one", { key: "1000" })).degraded, "its breaker is open").toBe(true);
    expect((await limits.limit("one", { key: "0" })).degraded, "its breaker is gone").toBeUndefined();
  });

  test("a store that cannot name the node of a call still decides it", async () => {
    const store: AsyncStore = {
      ...noded(() => FINE),
      nodeOf: () => {
        throw new Error("no such key");
      },
    };
    expect((await defineLimits(configs, { store, log: false }).limit("one", { key: "a" })).ok).toBe(true);
  });
});

describe("the log", () => {
  test("has one line when a node fails, with its cause, and one when it recovers", async () => {
    let failing = "ab";
    const log = kept();
    const store = noded((node) => (failing.includes(node) ? refused : FINE));
    const limits = defineLimits(configs, { store, log });
    const all = () => Promise.all(["a1", "b1", "c1", "a2", "b2"].map((key) => limits.limit("one", { key })));
    for (let i = 0; i < 100; i++) await all();
    const line = (node: string) =>
      `tidegate: noded: take of "one:${node}1" failed: connection refused; until noded (node ${node}) answers again, ` +
      'its calls are denied (onStoreError: "deny")';
    expect(log.lines).toEqual([line("a"), line("b")]);
    expect(log.causes).toEqual([refused, refused]);
    failing = "b";
    vi.advanceTimersByTime(5000);
    for (let i = 0; i < 100; i++) await all();
    expect(log.lines.slice(2)).toEqual(["tidegate: noded (node a) answers again"]);
  });

  test("has at most one such pair of lines per minute, and the latest state after it", async () => {
    let failing = true;
    const log = kept();
    const store: AsyncStore = { ...noded(() => (failing ? refused : FINE)), nodeOf: () => undefined };
    const limits = defineLimits(configs, { store, log });
    for (let i = 0; i < 599; i++) {
      failing = i % 2 === 0;
      await limits.limit("one");
      vi.advanceTimersByTime(100);
    }
    expect(log.lines).toHaveLength(2);
    failing = true;
    await limits.limit("one");
    vi.advanceTimersByTime(100);
    await limits.limit("one");
    expect(log.lines).toHaveLength(3);
  });

  test.each([
    ["allow" as const, 'allowed (onStoreError: "allow")'],
    [{ local: 0.5 }, "decided by a local limit (onStoreError: { local: 0.5 })"],
  ])("states how the limiter decides meanwhile: %j", async (onStoreError, words) => {
    const log = kept();
    await defineLimits(configs, { store: noded(() => refused), onStoreError, log }).limit("one", { key: "a" });
    expect(log.lines).toEqual([expect.stringContaining(`its calls are ${words}`)]);
  });

  test.each([
    ["the limiter", () => new Promise<never>(() => {})],
    ["the store", () => Promise.reject(new Error("no answer within 250 ms"))],
  ])("names the client's errors and the socket timeouts if %s had no response", async (_, decide) => {
    const log = kept();
    const answer = defineLimits(configs, { store: { ...noded(() => FINE), decide }, log }).limit("one", { key: "a" });
    await vi.advanceTimersByTimeAsync(250);
    expect((await answer).degraded).toBe(true);
    expect(log.lines).toEqual([expect.stringMatching(/no answer within 250 ms;.*client's errors.*half-open: set/)]);
  });

  test("has no line for a call that only waited for a node that has failed", async () => {
    const log = kept();
    const waited = new KeyError("its deadline passed while earlier calls ran", false);
    let failure: unknown = refused;
    const limits = defineLimits(configs, { store: noded(() => failure), log });
    await limits.limit("one", { key: "a" });
    const details = { store: "noded", operation: "take", identity: "one:a2", cause: waited, scope: "key" } as const;
    failure = new StoreError("late", details);
    await limits.limit("one", { key: "a2" });
    expect(log.lines).toEqual([expect.stringContaining("until noded (node a) answers again")]);
    // Its node has not failed.
    await limits.limit("one", { key: "b" });
    expect(log.lines[1]).toContain("calls on this key are denied");
  });

  test("is the console by default, and `false` disables it", async () => {
    const [error, info] = (["error", "info"] as const).map((way) => vi.spyOn(console, way).mockReturnValue());
    let failing = true;
    const run = async (options: Pick<LimiterOptions<AsyncStore>, "log">) => {
      const limits = defineLimits(configs, { store: noded(() => (failing ? refused : FINE)), ...options });
      failing = true;
      await limits.limit("one", { key: "a" });
      failing = false;
      await limits.limit("one", { key: "a" });
    };
    await run({ log: false });
    expect([error?.mock.calls, info?.mock.calls]).toEqual([[], []]);
    await run({});
    expect([error?.mock.calls.length, info?.mock.calls.length]).toEqual([1, 1]);
    expect(error?.mock.calls[0]).toEqual([expect.stringMatching(/^tidegate: noded: /), refused]);
  });

  test.each([
    ["throws", () => thrown(new Error("the disk is full"))],
    ["rejects", () => Promise.reject(new Error("the disk is full"))],
  ])("a logger that %s changes nothing", async (_, fail) => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const limits = defineLimits(configs, { store: noded(() => refused), log: { error: fail, log: fail } });
    expect(await limits.limit("one", { key: "a" })).toMatchObject({ ok: false, degraded: true });
    await turn();
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test("has a line for a synchronous store too", () => {
    let failing = true;
    const log = kept();
    const states = memory();
    const guard =
      <A extends unknown[], T>(run: (...args: A) => T) =>
      (...args: A): T => {
        if (failing) throw refused;
        return run(...args);
      };
    const store: SyncStore = {
      name: "disk",
      sync: true,
      decide: guard((call, now) => states.decide(call, now)),
      decideAll: guard((calls, now) => states.decideAll(calls, now)),
      reset: guard((limit, key) => states.reset(limit, key)),
      getValue: guard((limit, key, now) => states.getValue(limit, key, now)),
    };
    const limits = defineLimits(configs, { store, log });
    for (let i = 0; i < 10; i++) limits.limit("one");
    expect(() => limits.reset("one")).toThrow(refused);
    expect(log.lines).toEqual([expect.stringMatching(/^tidegate: disk: connection refused; until disk answers again/)]);
    failing = false;
    limits.limit("one");
    expect(log.lines.slice(1)).toEqual(["tidegate: disk answers again"]);
  });

  test("has one line for a middleware that responds with 503", async () => {
    const log = kept();
    const limits = defineLimits(configs, { store: noded(() => refused), log });
    const handler = rateLimit(limits, { name: "one", key: () => "a" }, () => new Response("ok"));
    for (let i = 0; i < 20; i++) expect((await handler(new Request("http://localhost/"))).status).toBe(503);
    expect(log.lines).toHaveLength(1);
  });

  test.each([null, true, {}, { error: () => {} }, "console"])("%j is refused", (log) => {
    expect(() => defineLimits(configs, { log: log as never })).toThrow(
      /^`log` must be false, or an object with error and info, or error and log, such as console; got /,
    );
  });
});

describe("any value that a client throws", () => {
  test.each([
    [undefined, "undefined"],
    [null, "null"],
    ["a string", "a string"],
    [Object.create(null), "an error without a message"],
    [Symbol("odd"), "Symbol(odd)"],
    [{ message: 7 }, "[object Object]"],
    [new (class TimeoutError extends Error {})(), "TimeoutError"],
    [new AggregateError(["::1:1", "127.0.0.1:1"].map((at) => new Error(`refused ${at}`))), "Error: refused ::1:1"],
    [new TypeError("fetch failed", { cause: new Error("connect refused") }), "fetch failed: connect refused"],
  ])("%s is the cause of a StoreError", async (thrown, what) => {
    const log = kept();
    const limits = defineLimits(configs, { store: noded(() => thrown), log });
    const { cause } = await limits.limit("one", { key: "a" });
    expect(cause).toBeInstanceOf(StoreError);
    expect((cause as StoreError).message).toBe(`noded: take of "one:a" failed: ${what}`);
    expect((cause as StoreError).cause).toBe(thrown);
    await expect(limits.reset("one", { key: "a" })).rejects.toBeInstanceOf(StoreError);
    expect(log.lines).toHaveLength(1);
  });
});

test("a key's failure without an answer of the store does not count as one", async () => {
  let calls = 0;
  const fail = (answered: boolean) => () => {
    const cause = new KeyError("not sent", answered);
    const details = { store: "rows", operation: "take", identity: "one", cause, scope: "key" } as const;
    return Promise.reject(calls++ % 2 === 0 ? new Error("down") : new StoreError("not sent", details));
  };
  for (const [answered, sent] of [
    [true, 20],
    [false, 9],
  ] as const) {
    calls = 0;
    const store = behind(fail(answered), "rows");
    const limits = defineLimits({ one: { kind: "token bucket", rate: 1, period: 1000 } }, { store, log: false });
    for (let i = 0; i < 20; i++) await limits.limit("one");
    expect(calls).toBe(sent);
  }
});

test("a decision that the store has cached needs no server, and does not count as its answer", async () => {
  const call = { op: "take", limit: new Limit("one", bucket), key: "a", count: 1001, reserve: false } as const;
  const denied = memory().decide(call);
  let calls = 0;
  const fail = () => {
    calls++;
    return Promise.reject(refused);
  };
  const recall: AsyncStore["recall"] = ({ key }) => (key === "denied" ? denied : undefined);
  const store = { ...behind(fail, "rows"), recall };
  const log = kept();
  const limits = defineLimits(configs, { store, log });
  for (let i = 0; i < 20; i++) {
    expect((await limits.limit("one", { key: "other" })).degraded).toBe(true);
    expect(await limits.limit("one", { key: "denied" })).toBe(denied);
  }
  expect(calls).toBe(5);
  expect(log.lines).toHaveLength(1);
});
