/** @upstash/ratelimit behaves as the site's page says. */
import { Ratelimit } from "@upstash/ratelimit";
import { describe, expect, test } from "vitest";
import { defineLimits, MINUTE } from "../../../npm/tidegate/src/index.ts";
import { redis } from "../../../npm/tidegate/src/stores/redis.ts";
import { transactional } from "../../../npm/tidegate/src/stores/index.ts";
import { noRedis, onRedis, refused, suite } from "./rows.ts";

const six = { kind: "token bucket", rate: 6, period: MINUTE } as const;

const client = onRedis();

describe.skipIf(noRedis)("@upstash/ratelimit", () => {
  type Client = ConstructorParameters<typeof Ratelimit>[0]["redis"];
  const requests: { args: unknown[] }[] = [];
  /** Upstash's client by shape, on this server; without the first line of a script, which only Upstash's takes. */
  const shape = (strip: boolean): Client =>
    ({
      evalsha: () => Promise.reject(new Error("NOSCRIPT")),
      eval: (script: string, keys: string[], args: unknown[]) => {
        requests.push({ args });
        const whole = strip ? script.replace(/^\s*#!lua[^\n]*\n/, "") : script;
        return client().eval(whole, keys.length, ...keys, ...args.map((arg) => `${arg ?? ""}`));
      },
      get: (key: string) => client().get(key),
    }) as unknown as Client;
  const limiter = (algorithm: ReturnType<typeof Ratelimit.fixedWindow>, prefix: string, strip = true) =>
    new Ratelimit({ redis: shape(strip), limiter: algorithm, prefix, ephemeralCache: false, timeout: 60_000 });
  const ours = (config: Parameters<typeof defineLimits>[0][string], prefix: string) =>
    defineLimits({ api: config }, { store: redis(client(), { prefix }), timeout: 60_000 });

  suite("upstash", {
    "a server that does not answer in time": async () => {
      const never = () => new Promise<never>(() => {});
      const there = new Ratelimit({
        redis: { evalsha: never, eval: never } as unknown as Client,
        limiter: Ratelimit.fixedWindow(1, "60 s"),
        timeout: 20,
        ephemeralCache: false,
      });
      expect(await there.limit("a")).toMatchObject({ success: true, reason: "timeout" });
      const store = transactional({ name: "silent", transaction: never });
      expect(await defineLimits({ api: six }, { store, timeout: 20 }).limit("api")).toMatchObject({ ok: false });
    },
    "a plain Redis server": async () => {
      await expect(limiter(Ratelimit.fixedWindow(1, "60 s"), "raw", false).limit("a")).rejects.toThrow(/shebang/);
      expect((await ours(six, "raw-ours:").limit("api")).ok).toBe(true);
    },
    "a denied call, fixed window": async () => {
      // A window of a year: none ends during the test.
      const there = limiter(Ratelimit.fixedWindow(2, "365 d"), "fixed");
      for (let i = 0; i < 5; i++) expect((await there.limit("a")).success).toBe(i < 2);
      const [key = ""] = await client().keys("fixed:*");
      expect(await client().get(key)).toBe("5");
      const here = ours({ kind: "fixed window", rate: 2, period: 365 * 86_400_000, start: 0 }, "fixed-ours:");
      for (let i = 0; i < 5; i++) expect((await here.limit("api")).ok).toBe(i < 2);
      expect((await here.getValue("api")).value).toBe(0);
    },
    "a denied call of more than one token, sliding window": async () => {
      const there = limiter(Ratelimit.slidingWindow(10, "365 d"), "sliding");
      expect((await there.limit("a", { rate: 8 })).success).toBe(true);
      expect((await there.limit("a", { rate: 8 })).success).toBe(false);
      expect((await there.limit("a")).success).toBe(false);
      const here = ours({ kind: "token bucket", rate: 10, period: 365 * 86_400_000 }, "sliding-ours:");
      expect((await here.limit("api", { count: 8 })).ok).toBe(true);
      expect((await here.limit("api", { count: 8 })).ok).toBe(false);
      expect((await here.limit("api")).ok).toBe(true);
    },
    "`reset` of a denied call of three tokens": async () => {
      const there = limiter(Ratelimit.tokenBucket(1, "1 d", 5), "bucket");
      await there.limit("a", { rate: 5 });
      const { success, reset } = await there.limit("a", { rate: 3 });
      expect([success, Math.ceil((reset - Date.now()) / 86_400_000)]).toEqual([false, 1]);
      const here = ours({ kind: "token bucket", rate: 1, period: 86_400_000, capacity: 5 }, "bucket-ours:");
      await here.limit("api", { count: 5 });
      const { retryAfter = 0 } = await here.limit("api", { count: 3 });
      expect(Math.ceil(retryAfter / 86_400_000)).toBe(3);
    },
    "a bucket refills": async () => {
      // Its clock is this process's: half an interval later nothing has refilled.
      const there = limiter(Ratelimit.tokenBucket(10, "1 d", 10), "refill");
      await there.limit("a", { rate: 10 });
      const real = Date.now;
      try {
        Date.now = () => real() + 43_200_000;
        expect((await there.limit("a")).success).toBe(false);
      } finally {
        Date.now = real;
      }
      let now = 0;
      const here = defineLimits({ api: { kind: "token bucket", rate: 10, period: 86_400_000 } }, { now: () => now });
      here.limit("api", { count: 10 });
      now = 43_200_000;
      expect(here.limit("api", { count: 5 }).ok).toBe(true);
    },
    'an identifier that is `""`': async () => {
      const there = limiter(Ratelimit.fixedWindow(1, "365 d"), "empty");
      expect([(await there.limit("")).success, (await there.limit("")).success]).toEqual([true, false]);
      expect(refused(() => defineLimits({ api: six }).limit("api", { key: "" }))).toBe(true);
    },
    "a negative count": async () => {
      expect((await limiter(Ratelimit.tokenBucket(1, "1 d", 5), "negative").limit("a", { rate: -100 })).remaining).toBe(
        105,
      );
      expect(refused(() => defineLimits({ api: six }).limit("api", { count: -100 }))).toBe(true);
    },
    "whose clock": async () => {
      requests.length = 0;
      const before = Date.now();
      await limiter(Ratelimit.tokenBucket(1, "1 d", 5), "clock").limit("a");
      expect(requests[0]?.args.some((arg) => Number(arg) >= before && Number(arg) <= Date.now())).toBe(true);
      const real = Date.now;
      try {
        Date.now = () => real() + 365 * 86_400_000;
        const { now } = await ours(six, "clock-ours:").limit("api");
        expect(now).toBeLessThan(before + 86_400_000);
      } finally {
        Date.now = real;
      }
    },
  });

  test("a bucket with half of n as rate and capacity grants n in any span of one window; with n, twice as many", () => {
    const granted = (rate: number) => {
      const clock = { now: 0 };
      const limits = defineLimits({ api: { kind: "token bucket", rate, period: MINUTE } }, { now: () => clock.now });
      // Calls every second of an hour, after a rest. Of the grants, the most within one minute.
      const at: number[] = [];
      for (; clock.now < 60 * MINUTE; clock.now += 1000) {
        const calls = clock.now < MINUTE / 2 ? 0 : 10;
        for (let i = 0; i < calls; i++) if (limits.limit("api").ok) at.push(clock.now);
      }
      return Math.max(...at.map((from) => at.filter((time) => time >= from && time <= from + MINUTE).length));
    };
    expect([granted(5), granted(10)]).toEqual([10, 20]);
  });
  test("getRemaining and check with a count of 0 return the tokens available; check with a count, what would be left", async () => {
    const there = limiter(Ratelimit.tokenBucket(1, "1 d", 5), "remaining");
    await there.limit("a", { rate: 2 });
    const here = ours({ kind: "token bucket", rate: 1, period: 86_400_000, capacity: 5 }, "remaining-ours:");
    await here.limit("api", { count: 2 });
    const { remaining } = await there.getRemaining("a");
    expect([remaining, (await here.check("api", { count: 0 })).remaining, (await here.check("api")).remaining]).toEqual(
      [3, 3, 2],
    );
  });
});
