/** rate-limiter-flexible behaves as the site's page says. */
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, RateLimiterUnion } from "rate-limiter-flexible";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Decision, defineLimits, MINUTE, SECOND } from "../../../npm/tidegate/src/index.ts";
import { rateLimit as fetchLimit } from "../../../npm/tidegate/src/middleware/fetch.ts";
import { noRedis, onRedis, refused, suite } from "./rows.ts";

const six = { kind: "token bucket", rate: 6, period: MINUTE } as const;

const client = onRedis();
afterEach(() => void vi.useRealTimers());

describe("rate-limiter-flexible", () => {
  const points = (options = {}) => new RateLimiterMemory({ points: 5, duration: 60, ...options });
  const denial = (call: Promise<unknown>): Promise<unknown> => call.then(() => undefined).catch((denied) => denied);
  const limits = () => defineLimits({ api: { ...six, rate: 5 }, other: { ...six, rate: 1 } }, { now: () => 0 });

  suite("rate-limiter-flexible", {
    "a denial": async () => {
      expect(await denial(points().consume("a", 6))).toBeInstanceOf(RateLimiterRes);
      expect(limits().limit("api", { count: 6 }).ok).toBe(false);
    },
    "a denied call": async () => {
      const limiter = points();
      for (let i = 0; i < 7; i++) await denial(limiter.consume("a"));
      expect((await limiter.get("a"))?.consumedPoints).toBe(7);
      const ours = limits();
      for (let i = 0; i < 7; i++) ours.limit("api");
      expect(ours.getValue("api")).toMatchObject({ value: 0, ts: 0 });
    },
    "a count below 0, and `reward`": async () => {
      expect((await points().consume("a", -100)).remainingPoints).toBe(105);
      expect((await points().reward("a", 100)).remainingPoints).toBe(105);
      expect(refused(() => limits().limit("api", { count: -100 }))).toBe(true);
      const ours = limits();
      expect(ours.give("api", { count: 100 }).value).toBe(5);
    },
    "`penalty` of more points than are left": async () => {
      vi.useFakeTimers();
      const clock = { now: 0 };
      const ours = defineLimits({ api: { ...six, rate: 5 } }, { now: () => clock.now });
      const limiter = points();
      await limiter.penalty("a", 8);
      ours.charge("api", { count: 8 });
      await vi.advanceTimersByTimeAsync(60_000);
      clock.now += 60_000;
      expect((await limiter.consume("a")).remainingPoints).toBe(4);
      expect(ours.limit("api").remaining).toBe(1);
    },
    "a denial during a block": async () => {
      // One call per second.
      async function granted(call: () => unknown): Promise<number[]> {
        vi.useFakeTimers({ now: 0 });
        const at = [];
        for (let second = 0; second < 30; second++) {
          if (await call()) at.push(second);
          await vi.advanceTimersByTimeAsync(SECOND);
        }
        return at;
      }
      const limiter = points({ points: 2, duration: 5, blockDuration: 10 });
      const there = await granted(async () => (await denial(limiter.consume("a"))) === undefined);
      expect(there).toEqual([0, 1, 12, 13, 24, 25]);
      const window = { kind: "fixed window", rate: 2, period: 5 * SECOND, start: "first request" } as const;
      const blocked = (isBegun: (decision: Decision) => boolean) => {
        const ours = defineLimits({ api: window });
        return granted(() => {
          const decision = ours.limit("api", { key: "a" });
          if (isBegun(decision)) ours.block("api", { key: "a", for: 10 * SECOND });
          return decision.ok;
        });
      };
      expect(await blocked(({ ok, remaining }) => ok && remaining === 0)).toEqual([0, 1, 11, 12, 22, 23]);
      expect(await blocked(({ ok }) => !ok)).toEqual([0, 1]);
      const limited = fetchLimit(
        defineLimits({ api: window }),
        { name: "api", key: "a", block: { after: 1, for: 10 * SECOND } },
        () => new Response("hello"),
      );
      const here = await granted(async () => (await limited(new Request("https://app.example/"))).status === 200);
      expect(here).toEqual(there);
    },
    "a count of NaN": async () => {
      const limiter = points();
      await limiter.consume("a", Number.NaN);
      for (let i = 0; i < 50; i++) expect(await denial(limiter.consume("a"))).toBeUndefined();
      expect(refused(() => limits().limit("api", { count: Number.NaN }))).toBe(true);
    },
    "a count of 0.1": async () => {
      const limiter = points();
      for (let i = 0; i < 100; i++) expect(await denial(limiter.consume("a", 0.1))).toBeUndefined();
      if (!noRedis) {
        const there = new RateLimiterRedis({ storeClient: client(), points: 5, duration: 60 });
        expect(String(await denial(there.consume("a", 0.1)))).toContain("decimal");
      }
      const ours = limits();
      for (let i = 0; i < 40; i++) expect(ours.limit("api", { count: 0.125 }).ok).toBe(true);
      expect(ours.limit("api", { count: 0.125 }).ok).toBe(false);
    },
    "several limits, one denies": async () => {
      const [a, b] = [points({ keyPrefix: "a" }), points({ keyPrefix: "b", points: 1 })];
      const union = new RateLimiterUnion(a, b);
      for (let i = 0; i < 3; i++) await denial(union.consume("k"));
      expect((await a.get("k"))?.consumedPoints).toBe(3);
      const ours = limits();
      for (let i = 0; i < 3; i++) ours.limitAll([{ name: "api" }, { name: "other" }]);
      expect(ours.getValue("api").value).toBe(4);
    },
    "prefix `a:b` with key `c`, and `a` with `b:c`": () => {
      expect(points({ keyPrefix: "a:b" }).getKey("c")).toBe(points({ keyPrefix: "a" }).getKey("b:c"));
      // Names contain no colon, so the text before the first one is the name.
      expect(refused(() => defineLimits({ "a:b": six }))).toBe(true);
    },
    "a key that is a number": async () => {
      const limiter = points();
      await limiter.consume(7);
      expect((await limiter.get("7"))?.consumedPoints).toBe(1);
      expect(refused(() => limits().limit("api", { key: 7 as never }))).toBe(true);
    },
    "points come back": async () => {
      const limiter = points();
      await limiter.consume("a", 5);
      const { msBeforeNext } = (await denial(limiter.consume("a"))) as InstanceType<typeof RateLimiterRes>;
      expect(msBeforeNext).toBeGreaterThan(30_000);
      const ours = limits();
      ours.limit("api", { count: 5 });
      expect(ours.limit("api").retryAfter).toBe(12_000);
    },
  });

  test("execEvenly grants the first call now, and denies those beyond the points; so does the counterpart", async () => {
    vi.useFakeTimers();
    const limiter = points({ points: 4, duration: 2, execEvenly: true });
    const beginning = Date.now();
    const there = Array.from({ length: 5 }, () =>
      limiter.consume("a").then(
        () => Date.now() - beginning,
        () => "denied",
      ),
    );
    await vi.advanceTimersByTimeAsync(2000);
    const [first, ...rest] = await Promise.all(there);
    expect(first).toBe(0);
    expect(rest.map((at) => at === "denied")).toEqual([false, false, false, true]);
    const even = { kind: "token bucket", rate: 4, period: 2 * SECOND, capacity: 1, maxReserved: 3 } as const;
    const ours = defineLimits({ even }, { now: () => 0 });
    const here = Array.from({ length: 5 }, () => ours.limit("even", { reserve: true }));
    expect(here.map(({ ok, retryAt = 0 }) => (ok ? retryAt : "denied"))).toEqual([0, 500, 1000, 1500, "denied"]);
  });
});
