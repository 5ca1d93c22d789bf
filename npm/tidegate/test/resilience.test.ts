/** How a limiter handles a store that fails, with a hand-written store and fake timers. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type Config,
  defineLimits,
  InputError,
  isStoreError,
  memory,
  type OnStoreError,
  RateLimitError,
  StoreError,
} from "../src/index.ts";
import { rateLimitHeaders, statusOf } from "../src/http/index.ts";
import type { AsyncStore } from "../src/stores/contract.ts";

const bucket = { kind: "token bucket", rate: 10, period: 1000, capacity: 10 } as const satisfies Config;

/** A store that decides, rejects, throws synchronously or never settles, as `mode` says. */
class Flaky implements AsyncStore {
  readonly name = "flaky";
  readonly sync = false;
  mode: "answer" | "reject" | "throw" | "hang" = "answer";
  calls = 0;
  /** Resolves, or rejects, the call that was sent last. */
  ends: ((result: never) => void)[] = [];
  readonly error: unknown = new Error("connection refused");
  readonly #memory = memory();

  #run<T>(body: () => T): Promise<T> {
    this.calls++;
    if (this.mode === "throw") throw this.error;
    if (this.mode === "hang") return new Promise((...ends) => Object.assign(this, { ends }));
    if (this.mode === "reject") return Promise.reject(this.error);
    return Promise.resolve().then(body);
  }
  decide: AsyncStore["decide"] = (call, now) => this.#run(() => this.#memory.decide(call, now));
  decideAll: AsyncStore["decideAll"] = (calls, now) => this.#run(() => this.#memory.decideAll(calls, now));
  reset: AsyncStore["reset"] = (limit, key) => this.#run(() => this.#memory.reset(limit, key));
  getValue: AsyncStore["getValue"] = (limit, key, now) => this.#run(() => this.#memory.getValue(limit, key, now));
}

let store: Flaky;
let rejections = 0;
const onRejection = () => rejections++;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  store = new Flaky();
  rejections = 0;
  process.on("unhandledRejection", onRejection);
});
afterEach(() => {
  expect(vi.getTimerCount(), "timers left behind").toBe(0);
  process.off("unhandledRejection", onRejection);
  expect(rejections).toBe(0);
});

const limiter = (onStoreError?: OnStoreError, more: Partial<Config> = {}, timeout?: number) =>
  defineLimits({ one: { ...bucket, ...more } as Config, two: bucket }, { store, onStoreError, timeout });

test("a store that responds decides, and the decision has no `degraded`", async () => {
  const d = await limiter().limit("one", { count: 4 });
  expect(d).toMatchObject({ ok: true, value: 6 });
  expect(d).not.toHaveProperty("degraded");
  expect(store.calls).toBe(1);
});

describe.each(["reject", "throw"] as const)("a failing store (%s)", (mode) => {
  beforeEach(() => {
    store.mode = mode;
  });

  test("denies by default, with the cause", async () => {
    const d = await limiter().limit("one", { key: "k" });
    expect(d).toMatchObject({ ok: false, degraded: true, remaining: 0, limit: 10, now: 1_000_000 });
    expect(d.retryAt).toBeUndefined();
    expect(d.cause).toBeInstanceOf(StoreError);
    expect(d.cause).toMatchObject({
      code: "TIDEGATE_STORE",
      message: 'flaky: take of "one:k" failed: connection refused',
      store: "flaky",
      operation: "take",
      identity: "one:k",
      cause: store.error,
    });
    const thrown = await limiter()
      .limit("one", { throws: true })
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(RateLimitError);
    expect(thrown).toMatchObject({ message: 'rate limited by "one": the store failed', cause: { cause: store.error } });
  });

  test("allows if `onStoreError` does, except a count beyond the capacity", async () => {
    const limits = limiter("allow");
    expect(await limits.limit("one")).toMatchObject({ ok: true, degraded: true });
    expect(await limits.limit("one", { count: 11 })).toMatchObject({
      ok: false,
      degraded: true,
      reason: "exceeds capacity",
    });
    expect(await limits.limitAll([{ name: "one" }, { name: "two" }])).toMatchObject({ ok: true, degraded: true });
    expect(await limits.limitAll([{ name: "one" }, { name: "two", count: 11 }])).toMatchObject({
      ok: false,
      degraded: true,
    });
  });

  test("a grant without the store has no rate-limit headers", async () => {
    const { cause: _, policy, ...granted } = await limiter("allow").limit("one");
    expect(granted).toEqual({
      ok: true,
      value: 0,
      ts: 1_000_000,
      remaining: 0,
      limit: 10,
      retryAt: undefined,
      retryAfter: undefined,
      resetAt: 1_000_000,
      reserved: false,
      reason: undefined,
      now: 1_000_000,
      degraded: true,
    });
    expect(rateLimitHeaders({ ...granted, policy })).toEqual({ "RateLimit-Policy": '"one";q=10;w=1' });
  });

  test("a denial of a local limit has a retry time, so its status is 429; any other is 503", async () => {
    const local = limiter({ local: 0.1 });
    await local.limit("one");
    const denied = await local.limit("one");
    expect([denied.ok, denied.degraded, denied.retryAfter, statusOf(denied)]).toEqual([false, true, 1000, 429]);
    expect(statusOf(await limiter("deny").limit("one"))).toBe(503);
  });

  test("what only the fraction is too small for is 503: the limit itself can grant it once the store answers", async () => {
    const local = limiter({ local: 0.1 });
    const [one, all, never] = await Promise.all([
      local.limit("one", { count: 5 }),
      local.limitAll([{ name: "one", count: 5 }, { name: "two" }]),
      local.limit("one", { count: 11 }),
    ]);
    expect([one.ok, one.reason, statusOf(one)]).toEqual([false, undefined, 503]);
    expect([all.ok, statusOf(all)]).toEqual([false, 503]);
    expect([never.reason, statusOf(never)]).toEqual(["exceeds capacity", 400]);
  });

  test("a local fixed window starts at the limit's `start`", async () => {
    const window = { kind: "fixed window", rate: 2, period: 1000, start: 300 } as const;
    const limits = defineLimits({ window }, { store, onStoreError: { local: 0.5 } });
    expect((await limits.limit("window")).ok).toBe(true);
    // The clock is at a multiple of the period.
    expect(await limits.limit("window")).toMatchObject({ ok: false, retryAfter: 300 });
  });

  test("a limit's own setting overrides the limiter's", async () => {
    const limits = limiter("allow", { onStoreError: "deny" });
    expect((await limits.limit("one")).ok).toBe(false);
    expect((await limits.limit("two")).ok).toBe(true);
    expect((await limits.limitAll([{ name: "two" }, { name: "one" }])).ok).toBe(false);
  });

  test("a local limit has its fraction of rate and capacity", async () => {
    const limits = limiter({ local: 0.5 });
    for (let i = 0; i < 5; i++)
      expect(await limits.limit("one", { key: "k" })).toMatchObject({ ok: true, degraded: true });
    expect(await limits.limit("one", { key: "k" })).toMatchObject({ ok: false, degraded: true, retryAfter: 200 });
    vi.advanceTimersByTime(200);
    expect((await limits.limit("one", { key: "k" })).ok).toBe(true);
    expect((await limits.limit("one", { key: "another" })).ok).toBe(true);
  });

  test("a local limit has its fraction of `maxReserved`", async () => {
    const limits = limiter({ local: 0.5 }, { maxReserved: 4 });
    expect((await limits.limit("one", { count: 5 })).ok).toBe(true);
    const reserved = await limits.limit("one", { count: 2, reserve: true });
    expect(reserved).toMatchObject({ ok: true, reserved: true, degraded: true });
    expect(await limits.limit("one", { reserve: true })).toMatchObject({ ok: false, degraded: true, retryAfter: 200 });
  });

  test.each(["deny", "allow"] as const)(
    "%s: giving and charging never deny; a block was not stored",
    async (setting) => {
      const limits = limiter(setting);
      const calls = [
        limits.give("one", { count: 1 }),
        limits.charge("one", { count: 1 }),
        limits.block("one", { for: 1000 }),
      ];
      expect((await Promise.all(calls)).map(({ ok, degraded }) => [ok, degraded])).toEqual([
        [true, true],
        [true, true],
        [false, true],
      ]);
    },
  );

  test("a small fraction of a small limit still grants one at a time", async () => {
    const limits = limiter({ local: 0.01 });
    expect((await limits.limit("one")).ok).toBe(true);
    expect(await limits.limit("one")).toMatchObject({ ok: false, retryAfter: 10_000 });
  });

  test("several local limits take all or nothing, two on one for their sum", async () => {
    const limits = limiter({ local: 0.5 });
    const six = await limits.limitAll([
      { name: "one", count: 3 },
      { name: "one", count: 3 },
    ]);
    expect(six).toMatchObject({ ok: false, degraded: true });
    expect(
      (
        await limits.limitAll([
          { name: "one", count: 3 },
          { name: "two", count: 6 },
        ])
      ).ok,
    ).toBe(false);
    const all = await limits.limitAll([
      { name: "one", count: 5 },
      { name: "two", count: 5 },
    ]);
    expect(all).toMatchObject({ ok: true, degraded: true, decisions: [{ value: 0, degraded: true }, { value: 0 }] });
    const denied = await limits.limitAll([
      { name: "one", count: 1 },
      { name: "two", count: 2 },
    ]);
    expect(denied).toMatchObject({ ok: false, retryAfter: 400 });
    const mixed = limiter({ local: 0.5 }, { onStoreError: "deny" });
    expect((await mixed.limitAll([{ name: "two", count: 5 }, { name: "one" }])).ok).toBe(false);
    expect((await mixed.limit("two", { count: 5 })).ok, "nothing was taken from two").toBe(true);
    const beside = limiter({ local: 0.5 }, { onStoreError: "allow" });
    expect((await beside.limitAll([{ name: "two", count: 5 }, { name: "one" }])).ok).toBe(true);
    expect((await beside.limit("two")).ok, "all was taken from two").toBe(false);
  });

  test("reset and getValue need the store, and reject", async () => {
    const limits = limiter("allow");
    await expect(limits.reset("one")).rejects.toMatchObject({ code: "TIDEGATE_STORE", operation: "reset" });
    await expect(limits.getValue("one")).rejects.toMatchObject({ code: "TIDEGATE_STORE", operation: "getValue" });
  });
});

describe("the deadline", () => {
  beforeEach(() => {
    store.mode = "hang";
  });

  test.each([
    [undefined, undefined, 250],
    [40, undefined, 40],
    [40, 90, 90],
  ])("limiter %s, limit %s: %s ms", async (timeout, own, expected) => {
    const limits = limiter("deny", own === undefined ? {} : { timeout: own }, timeout);
    const settled = vi.fn();
    const answer = limits.limit("one").then((d) => {
      settled();
      return d;
    });
    await vi.advanceTimersByTimeAsync(expected - 1);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(settled).toHaveBeenCalled();
    const { cause } = await answer;
    expect(isStoreError(cause)).toBe(true);
    expect((cause as Error).message).toBe(`flaky: take of "one" failed: no answer within ${expected} ms`);
  });

  test("of several limits the shortest timeout applies to all", async () => {
    const limits = limiter("deny", { timeout: 40 });
    const settled = vi.fn();
    const answer = limits.limitAll([{ name: "two" }, { name: "one" }]).then(settled);
    await vi.advanceTimersByTimeAsync(39);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await answer;
    expect(settled).toHaveBeenCalledOnce();
  });

  test.each(["resolves", "rejects"])("a call that %s after its deadline counts as one failure", async (how) => {
    store.mode = "hang";
    const limits = limiter();
    for (let i = 0; i < 6; i++) {
      const call = limits.limit("one");
      await vi.advanceTimersByTimeAsync(250);
      store.ends[how === "resolves" ? 0 : 1]?.({ ok: true } as never);
      expect(await call).toMatchObject({ ok: false, degraded: true });
      await vi.advanceTimersByTimeAsync(0);
      expect(store.calls).toBe(Math.min(i + 1, 5));
    }
  });

  test("a rejection after the deadline is handled", async () => {
    let reject: (error: Error) => void = () => {};
    store.decide = () => new Promise((_, no) => (reject = no));
    const call = limiter().limit("one");
    await vi.advanceTimersByTimeAsync(250);
    reject(new Error("late"));
    expect((await call).degraded).toBe(true);
    vi.useRealTimers();
    await new Promise((resolve) => setTimeout(resolve, 5));
    vi.useFakeTimers();
  });
});

describe("the breaker", () => {
  test("after repeated failures no call waits; single probes reach the store; then all calls do", async () => {
    const limits = limiter("deny");
    store.mode = "hang";
    const first = Promise.all(Array.from({ length: 5 }, () => limits.limit("one")));
    await vi.advanceTimersByTimeAsync(250);
    expect((await first).every((d) => d.degraded)).toBe(true);
    expect(store.calls).toBe(5);

    for (let i = 0; i < 100; i++) {
      const d = await limits.limit("one"); // no timer is advanced
      expect(d.cause).toMatchObject({
        code: "TIDEGATE_STORE",
        message: expect.stringContaining("calls go to it again later"),
      });
    }
    expect(store.calls).toBe(5);

    await vi.advanceTimersByTimeAsync(100);
    const probe = limits.limit("one");
    await limits.limit("one"); // during the probe, no call waits
    expect(store.calls).toBe(6);
    await vi.advanceTimersByTimeAsync(250);
    expect((await probe).degraded).toBe(true);

    store.mode = "answer";
    await vi.advanceTimersByTimeAsync(200);
    expect(await limits.limit("one")).toMatchObject({ ok: true, value: 9 });
    for (let i = 0; i < 9; i++) expect((await limits.limit("one")).degraded).toBeUndefined();
    expect((await limits.limit("one")).ok).toBe(false);
  });

  test("probes after 100 ms, then after twice as long each time, at most five seconds", async () => {
    const limits = limiter();
    store.mode = "reject";
    for (let i = 0; i < 5; i++) await limits.limit("one");
    const probes: number[] = [];
    for (let ms = 10; ms <= 20_000; ms += 10) {
      const before = store.calls;
      await vi.advanceTimersByTimeAsync(10);
      await limits.limit("one");
      if (store.calls > before) probes.push(ms);
    }
    expect(probes).toEqual([100, 300, 700, 1500, 3100, 6300, 11_300, 16_300]);
  });

  test("a success restarts the count of failures", async () => {
    const limits = limiter();
    for (let i = 0; i < 20; i++) {
      store.mode = i % 5 === 4 ? "answer" : "reject";
      await limits.limit("one");
    }
    expect(store.calls).toBe(20);
  });

  test("an InputError of the store rejects unchanged, and is not counted as a failure", async () => {
    const limits = limiter("allow");
    const mistake = new InputError("key", "a string that this store can keep", "k");
    store.decide = () => Promise.reject(mistake);
    store.decideAll = store.decide as never;
    for (let i = 0; i < 6; i++) {
      await expect(limits.limit("one")).rejects.toBe(mistake);
      await expect(limits.limitAll([{ name: "one" }])).rejects.toBe(mistake);
    }
  });

  test("an invalid call is not counted as a failure, and does not reach the store", async () => {
    const limits = limiter("allow");
    for (let i = 0; i < 10; i++) expect(() => limits.limit("one", { count: Number.NaN })).toThrow("`count` must be");
    expect(store.calls).toBe(0);
    expect((await limits.limit("one")).degraded).toBeUndefined();
  });
});

test.each(["open", 1, { local: 0 }, { local: 2 }, { local: Number.NaN }, null])(
  "onStoreError: %s is refused",
  (setting) => {
    const rule = /^`onStoreError` must be "deny", "allow" or \{ local: a fraction above 0 and up to 1 \}; got /;
    expect(() => limiter(setting as never)).toThrow(rule);
    expect(() => limiter("deny", { onStoreError: setting as never })).toThrow(rule);
    expect(() => defineLimits({ one: { ...bucket, onStoreError: setting as never } }), "in memory too").toThrow(rule);
    expect(() => limiter().limit("one", { config: { ...bucket, onStoreError: setting as never } })).toThrow(rule);
  },
);

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "5", null])("timeout: %s is refused", (timeout) => {
  const rule = /^`timeout` must be a number of ms from 1 to 2147483647, or a string such as "30s"; got /;
  expect(() => limiter("deny", {}, timeout as never)).toThrow(rule);
  expect(() => limiter("deny", { timeout: timeout as never })).toThrow(rule);
});
