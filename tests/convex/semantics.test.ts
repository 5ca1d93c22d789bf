// Where Convex's rate limiter and this algebra are defined alike, their decisions are equal. Where they differ, the tests below
// show both decisions and the reason. So a policy written for one can be read as one for the other.
import fc from "fast-check";
import { defineLimits, evaluate, type Config } from "tidegate";
import { describe, expect, test } from "vitest";
import { calculateRateLimit, decide, decideOn, type ConvexConfig, type State } from "./convex.ts";

const NOW = 1_800_000_000_000;
const tokens = fc.integer({ min: 1, max: 1000 });
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Steps of a clock that never goes back, with a request at each. */
const requests = fc.array(
  fc.record({
    wait: fc.integer({ min: 0, max: 5000 }),
    count: fc.integer({ min: 0, max: 1500 }),
    reserve: fc.boolean(),
  }),
  { minLength: 1, maxLength: 30 },
);

/** Without `undefined` fields, as a person writes it; both read the same object. */
function written(fields: Record<string, unknown>): Config & ConvexConfig {
  const given: unknown = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return given as Config & ConvexConfig;
}

const limits = { rate: tokens, capacity: optional(tokens), maxReserved: optional(tokens) };

/** Powers of two as periods: multiplying by `rate / period` and dividing by `period` last round alike. */
const bucket = fc
  .record({ kind: fc.constant("token bucket"), period: fc.integer({ min: 0, max: 16 }).map((n) => 2 ** n), ...limits })
  .map(written);
const window = fc
  .record({
    kind: fc.constant("fixed window"),
    period: fc.integer({ min: 1, max: 60_000 }),
    start: fc.integer({ min: 0, max: 60_000 }),
    ...limits,
  })
  .map(written);

describe("where both are defined alike", () => {
  test.each([
    ["token bucket", bucket],
    ["fixed window", window],
  ])("a %s gives equal decisions and states, request after request", async (_kind, policy) => {
    await fc.assert(
      fc.asyncProperty(policy, requests, async (config, history) => {
        let now = NOW;
        let ours: State | null = null;
        let theirs: State | null = null;
        for (const { wait, count, reserve } of history) {
          now += wait;
          const mine = evaluate(ours, config, { now, count, reserve });
          if (mine.decision.reason === "exceeds capacity") {
            await expect(decideOn(theirs, config, { now, count, reserve })).rejects.toThrow("exceeds");
            continue;
          }
          const convex = await decideOn(theirs, config, { now, count, reserve });
          expect(mine.decision.ok).toBe(convex.ok);
          if (convex.ok || !reserve) {
            // Convex reports another time for a denied reservation (see below).
            const theirWait = convex.retryAfter === undefined ? undefined : Math.ceil(convex.retryAfter);
            expect(mine.decision.retryAfter).toBe(theirWait);
          }
          if (mine.decision.ok && count > 0) {
            expect(mine.state).toEqual(convex.state);
          }
          ours = mine.state;
          // Convex writes a row for a count of 0 too; here the state is unchanged (see below).
          theirs = count > 0 ? convex.state : theirs;
        }
      }),
    );
  });

  test("any period: the values are equal up to the order of rounding", () => {
    const period = fc.integer({ min: 1, max: 86_400_000 });
    const count = fc.integer({ min: 0, max: 1000 });
    fc.assert(
      fc.property(
        tokens,
        period,
        tokens,
        count,
        fc.integer({ min: 0, max: 100_000 }),
        (rate, length, value, taken, wait) => {
          fc.pre(taken <= 1000);
          const config = { kind: "token bucket", rate, period: length, capacity: 1000 } as const;
          const theirs = calculateRateLimit({ value, ts: NOW }, config, NOW + wait, taken);
          const { decision } = evaluate({ value, ts: NOW }, config, { now: NOW + wait, count: taken });
          const left = decision.ok ? decision.value : decision.value - taken;
          expect(Math.abs(left - theirs.value)).toBeLessThan(1e-9);
          if (Math.abs(theirs.value) > 1e-9) expect(decision.ok).toBe(theirs.value >= 0);
        },
      ),
    );
  });

  test("start: 0 is an offset, not its absence", () => {
    const config = { kind: "fixed window", rate: 5, period: 1000, start: 0 } as const;
    expect(calculateRateLimit(null, config, NOW + 1, 1).ts).toBe(NOW);
    expect(evaluate(null, config, { now: NOW + 1 }).state).toEqual({ value: 4, ts: NOW });
  });
});

describe("where they differ", () => {
  const second = { kind: "token bucket", rate: 10, period: 1000 } as const;

  test("maxReserved: 0 lends nothing; Convex ignores it, and the debt is unbounded", async () => {
    const config = { ...second, maxReserved: 0, capacity: 100 };
    const empty = { value: 0, ts: NOW };
    expect(await decideOn(empty, config, { now: NOW, count: 100, reserve: true })).toMatchObject({
      ok: true,
      retryAfter: 10_000,
    });
    expect(evaluate(empty, config, { now: NOW, count: 100, reserve: true }).decision).toMatchObject({ ok: false });
  });

  test("a count of NaN is refused; Convex grants it, and the limit no longer limits", async () => {
    const granted = await decideOn({ value: 0, ts: NOW }, second, { now: NOW, count: Number.NaN });
    expect(granted).toMatchObject({ ok: true, state: { value: Number.NaN } });
    expect((await decideOn(granted.state, second, { now: NOW, count: 10 })).ok).toBe(true);
    expect(() => evaluate({ value: 0, ts: NOW }, second, { now: NOW, count: Number.NaN })).toThrow("`count`");
  });

  test("a negative count is refused; Convex mints tokens above the capacity", async () => {
    expect((await decideOn(null, second, { now: NOW, count: -5 })).state).toEqual({ value: 15, ts: NOW });
    expect(() => evaluate(null, second, { now: NOW, count: -5 })).toThrow("`count`");
  });

  test("rate 0 and period 0 are refused; in Convex the one never refills, and the other grants everything", async () => {
    const still = { ...second, rate: 0, capacity: 10 };
    expect(await decideOn({ value: 0, ts: NOW }, still, { now: NOW })).toMatchObject({
      ok: false,
      retryAfter: Infinity,
    });
    const instant = { ...second, period: 0 };
    expect((await decideOn({ value: 0, ts: NOW }, instant, { now: NOW, count: 10 })).ok).toBe(true);
    expect(() => evaluate(null, still, { now: NOW })).toThrow("`rate`");
    expect(() => evaluate(null, instant, { now: NOW })).toThrow("`period`");
  });

  test("a bucket's clock that steps back takes nothing; in Convex it drains the bucket", async () => {
    const half = { value: 5, ts: NOW };
    expect(calculateRateLimit(half, second, NOW - 10_000, 1)).toMatchObject({
      value: -96,
      ts: NOW - 10_000,
      retryAfter: 9600,
    });
    expect(evaluate(half, second, { now: NOW - 10_000 })).toMatchObject({
      decision: { ok: true },
      state: { value: 4, ts: NOW },
    });
  });

  test("a window's clock that steps back keeps the window; in Convex one millisecond costs a window", async () => {
    const config = { kind: "fixed window", rate: 10, period: 1000, start: 0 } as const;
    const half = { value: 5, ts: NOW };
    expect(calculateRateLimit(half, config, NOW - 1, 1)).toMatchObject({ value: -6, ts: NOW - 1000 });
    expect(evaluate(half, config, { now: NOW - 1 }).state).toEqual({ value: 4, ts: NOW });
  });

  test("a state from an hour ahead or more heals as a broken clock's; in Convex the limit denies until then", async () => {
    const poisoned = { value: 5, ts: NOW + 365 * 86_400_000 };
    expect((await decideOn(poisoned, second, { now: NOW })).ok).toBe(false);
    expect(evaluate(poisoned, second, { now: NOW }).state).toEqual({ value: 9, ts: NOW });
  });

  test("start ahead of the clock is a grid in both directions; Convex grants nothing, or a part, until then", async () => {
    const later = { kind: "fixed window", rate: 10, period: 1000, start: NOW + 1500 } as const;
    expect((await decideOn(null, later, { now: NOW })).ok).toBe(false);
    expect((await decideOn(null, { ...later, capacity: 30 }, { now: NOW })).state?.value).toBe(9);
    expect(evaluate(null, later, { now: NOW }).state).toEqual({ value: 9, ts: NOW - 500 });
    expect(evaluate(null, { ...later, capacity: 30 }, { now: NOW }).state).toEqual({ value: 29, ts: NOW - 500 });
  });

  test("a window's grid is counted from `start`; Convex continues from the row", () => {
    const config = { kind: "fixed window", rate: 10, period: 1000, start: 0 } as const;
    const astray = { value: 5, ts: NOW - 1700 };
    expect(calculateRateLimit(astray, config, NOW, 1).ts).toBe(NOW - 700);
    expect(evaluate(astray, config, { now: NOW }).state?.ts).toBe(NOW);
  });

  test("retryAt is a whole millisecond at which it is granted; in Convex an hour's wait for one per hour is denied again", async () => {
    const hourly = { kind: "token bucket", rate: 1, period: 3_600_000 } as const;
    const empty = { value: 0, ts: NOW };
    const theirs = await decideOn(empty, hourly, { now: NOW });
    expect((await decideOn(empty, hourly, { now: Math.ceil(NOW + (theirs.retryAfter ?? 0)) })).ok).toBe(false);
    const { decision } = evaluate(empty, hourly, { now: NOW });
    expect(decision.retryAt).toBe(NOW + 3_600_000);
    expect(evaluate(empty, hourly, { now: NOW + 3_600_000 }).decision.ok).toBe(true);
    expect(evaluate(empty, hourly, { now: NOW + 3_599_999 }).decision.ok).toBe(false);
  });

  test("a denied reservation reports when it would be accepted; in Convex, when it could run", async () => {
    const config = { ...second, maxReserved: 7 };
    const owing = { value: -5, ts: NOW };
    const request = { now: NOW, count: 4, reserve: true };
    expect(await decideOn(owing, config, request)).toMatchObject({ ok: false, retryAfter: 900 });
    expect(evaluate(owing, config, request).decision).toMatchObject({ ok: false, retryAfter: 200 });
    expect(evaluate(owing, config, { ...request, now: NOW + 200 }).decision).toMatchObject({
      ok: true,
      reserved: true,
    });
  });

  test("a denial reports the available tokens; Convex reports their number after the count", () => {
    const three = { value: 3, ts: NOW };
    expect(calculateRateLimit(three, second, NOW, 5).value).toBe(-2);
    expect(evaluate(three, second, { now: NOW, count: 5 }).decision).toMatchObject({
      ok: false,
      value: 3,
      remaining: 3,
    });
  });

  test("more than the capacity is a denial with a reason, since counts come from data; Convex throws", async () => {
    await expect(decideOn(null, second, { now: NOW, count: 11 })).rejects.toThrow("exceeds 10");
    const { decision } = evaluate(null, second, { now: NOW, count: 11 });
    expect(decision).toMatchObject({ ok: false, reason: "exceeds capacity" });
    expect(decision.retryAt).toBeUndefined();
  });

  test("a count of 0 writes nothing; Convex writes the row", async () => {
    expect((await decideOn(null, second, { now: NOW, count: 0 })).state).toEqual({ value: 10, ts: NOW });
    expect(evaluate(null, second, { now: NOW, count: 0 }).state).toBeNull();
  });

  test("a fractional clock is floored; Convex stores it", () => {
    expect(calculateRateLimit(null, second, NOW + 0.5, 1).ts).toBe(NOW + 0.5);
    expect(evaluate(null, second, { now: NOW + 0.5 }).state?.ts).toBe(NOW);
  });
});

describe("where features built on it differ", () => {
  test("two shards: the whole capacity can be taken in one request; Convex denies more than half for ever", async () => {
    const config = { kind: "token bucket", rate: 10, period: 1000, shards: 2 } as const;
    expect((await decide(new Map(), config, { now: NOW, count: 6 })).ok).toBe(false);
    expect((await decide(new Map(), config, { now: NOW + 1_000_000, count: 6 })).ok).toBe(false);
    expect(await defineLimits({ two: config }).limit("two", { count: 6 })).toMatchObject({ ok: true, value: 4 });
  });

  test("ten fresh shards: a count above one shard's part is granted; Convex denies it and writes nothing", async () => {
    const config = { kind: "token bucket", rate: 100, period: 1000, shards: 10 } as const;
    const rows = new Map();
    expect(await decide(rows, config, { now: NOW, count: 15 })).toMatchObject({ ok: false, retryAfter: 500 });
    expect(rows.size).toBe(0);
    expect(await defineLimits({ ten: config }).limit("ten", { count: 15 })).toMatchObject({ ok: true, value: 85 });
  });

  test("shards must be an integer from 1; Convex takes 0 as 1, and 2.6 as 3", async () => {
    const config = (shards: number) => ({ kind: "token bucket", rate: 10, period: 1000, shards }) as const;
    expect((await decide(new Map(), config(0), { now: NOW })).ok).toBe(true);
    expect((await decide(new Map(), config(2.6), { now: NOW })).ok).toBe(true);
    for (const shards of [0, 2.6, -1]) expect(() => defineLimits({ odd: config(shards) })).toThrow("`shards`");
  });

  test("`throws` throws denials; Convex throws for successful reservations too", async () => {
    const config = { kind: "token bucket", rate: 10, period: 1000 } as const;
    const request = { now: NOW, reserve: true, throws: true };
    await expect(decideOn({ value: 0, ts: NOW }, config, request)).rejects.toThrow("RateLimited");
    const ours = defineLimits({ lent: config });
    await ours.limit("lent", { count: 10 });
    expect(await ours.limit("lent", { count: 5, reserve: true, throws: true })).toMatchObject({
      ok: true,
      reserved: true,
    });
  });
});
