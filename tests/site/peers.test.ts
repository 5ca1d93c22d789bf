/** What the pages on coming from other limiters say of them: each row, seen on the real package beside ours. */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Ratelimit } from "@upstash/ratelimit";
import express from "express";
import { MemoryStore, type Options, rateLimit as expressRateLimit, type Store } from "express-rate-limit";
import { Redis } from "ioredis";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, RateLimiterUnion } from "rate-limiter-flexible";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineLimits, isInputError, MINUTE } from "../../npm/tidegate/src/index.ts";
import { rateLimit } from "../../npm/tidegate/src/middleware/express.ts";
import { redis } from "../../npm/tidegate/src/stores/redis.ts";
import { transactional } from "../../npm/tidegate/src/store.ts";
import { isInstalled, root } from "../readme/blocks.ts";
import { RedisServer } from "../stores/redis/server.ts";

const six = { kind: "token bucket", rate: 6, period: MINUTE } as const;
const noRedis = !isInstalled("redis-server");
if (noRedis) console.warn("!!! WHAT OTHERS DO ON REDIS IS NOT TESTED: apt-get install redis-server");

/** The rows under "What changes in behaviour" of a page. */
function rows(page: string): string[] {
  const text = readFileSync(join(root, `npm/site/migrate/${page}.md`), "utf8");
  const [, section = ""] = text.split("## What changes in behaviour");
  const [table = ""] = /^\|[\s\S]*?\n\n/m.exec(`${section}\n\n`) ?? [];
  return [...table.matchAll(/^\| ([^|]+?) \|.*\|.*\|$/gm)].map(([, name = ""]) => name);
}

/** One test for each row, and no row without one. */
function suite(page: string, tests: Readonly<Record<string, () => unknown>>): void {
  test("has a test for each row", () => expect(Object.keys(tests)).toEqual(rows(page)));
  for (const [name, run] of Object.entries(tests)) test(name, run as () => Promise<void>);
}

const refused = (call: () => unknown): boolean => {
  try {
    call();
    return false;
  } catch (error) {
    return isInputError(error);
  }
};

let server: RedisServer | undefined;
let client: Redis;
beforeAll(async () => {
  if (noRedis) return;
  server = await RedisServer.start();
  client = new Redis(server.port, "127.0.0.1");
});
afterAll(async () => {
  client?.disconnect();
  await server?.stop();
});

describe("express-rate-limit", () => {
  /** Statuses of so many requests, and what the last answer said. */
  async function statuses(middleware: express.RequestHandler, times: number) {
    const app = express().set("env", "test");
    app.use(middleware, (_request, response) => void response.send("hello"));
    app.use(((_error, _request, response, _next) => void response.status(500).end()) as express.ErrorRequestHandler);
    const listening = app.listen(0, "127.0.0.1");
    await new Promise((resolve) => listening.once("listening", resolve));
    try {
      const answers = [];
      const { port } = listening.address() as AddressInfo;
      for (let i = 0; i < times; i++) answers.push(await fetch(`http://127.0.0.1:${port}/`));
      return { statuses: answers.map(({ status }) => status), last: answers.at(-1) as Response };
    } finally {
      listening.closeAllConnections();
      listening.close();
    }
  }
  const settings: Partial<Options> = { windowMs: MINUTE, limit: 2, standardHeaders: "draft-6", legacyHeaders: false };

  suite("express-rate-limit", {
    "a denied request": async () => {
      const store = new MemoryStore();
      const denied = await statuses(expressRateLimit({ ...settings, store, keyGenerator: () => "k" }), 5);
      expect(denied.statuses).toEqual([200, 200, 429, 429, 429]);
      expect((await store.get("k"))?.totalHits).toBe(5);
      store.shutdown();
      const limits = defineLimits({ api: { ...six, rate: 2 } }, { now: () => 0 });
      expect((await statuses(rateLimit(limits, { name: "api", key: "k" }), 5)).statuses).toEqual(denied.statuses);
      expect(limits.getValue("api", { key: "k" })).toMatchObject({ value: 0, ts: 0 });
    },
    "a request that costs more than one": async () => {
      // Its stores are asked for one hit at a time.
      expect(MemoryStore.prototype.increment.length).toBe(1);
      const limits = defineLimits({ api: six });
      expect((await statuses(rateLimit(limits, { name: "api", cost: 4 }), 2)).statuses).toEqual([200, 429]);
    },
    "when a window begins": async () => {
      const store = new MemoryStore();
      store.init({ windowMs: MINUTE } as Options);
      const before = Date.now();
      const first = (await store.increment("k")).resetTime as Date;
      expect(first.getTime()).toBeGreaterThanOrEqual(before + MINUTE);
      store.shutdown();
      const window = { kind: "fixed window", rate: 2, period: MINUTE } as const;
      const at = (now: number, key: string, start?: number) =>
        defineLimits({ api: start === undefined ? window : { ...window, start } }, { now: () => now }).limit("api", {
          key,
        });
      expect(at(90_000, "a").resetAt).toBe(at(90_000, "a").resetAt);
      expect(at(90_000, "a").resetAt % MINUTE).not.toBe(at(90_000, "b").resetAt % MINUTE);
      expect(at(90_000, "a", 0).resetAt).toBe(2 * MINUTE);
    },
    "a store that fails": async () => {
      const down = () => Promise.reject(new Error("connection refused"));
      const store = { increment: down, decrement: down, resetKey: down } as unknown as Store;
      const silent = { ...settings, store, validate: false, logger: { error() {}, warn() {} } } as Partial<Options>;
      expect((await statuses(expressRateLimit(silent), 1)).statuses).toEqual([500]);
      expect((await statuses(expressRateLimit({ ...silent, passOnStoreError: true }), 1)).statuses).toEqual([200]);
      const with_ = (onStoreError: "deny" | "allow" | { local: number }) =>
        defineLimits({ api: six }, { store: transactional({ name: "down", transaction: down }), onStoreError });
      const denied = await statuses(rateLimit(with_("deny"), { name: "api" }), 1);
      expect(denied.statuses).toEqual([503]);
      expect((await statuses(rateLimit(with_("allow"), { name: "api" }), 1)).statuses).toEqual([200]);
      const half = await statuses(rateLimit(with_({ local: 0.5 }), { name: "api" }), 4);
      expect(half.statuses).toEqual([200, 200, 200, 429]);
    },
    "`Retry-After`": async () => {
      const there = await statuses(expressRateLimit({ ...settings, validate: false }), 3);
      // All that is left of the minute, whatever the request needs.
      expect(Number(there.last.headers.get("Retry-After"))).toBeGreaterThan(30);
      const limits = defineLimits({ api: six }, { now: () => 0 });
      const here = await statuses(rateLimit(limits, { name: "api", jitter: 0 }), 7);
      expect(here.last.headers.get("Retry-After")).toBe("10");
      const spread = await statuses(rateLimit(limits, { name: "api" }), 1);
      expect(Number(spread.last.headers.get("Retry-After"))).toBeGreaterThanOrEqual(10);
      expect(Number(spread.last.headers.get("Retry-After"))).toBeLessThanOrEqual(15);
    },
  });
});

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
    "a count below 0": async () => {
      expect((await points().consume("a", -100)).remainingPoints).toBe(105);
      expect(refused(() => limits().limit("api", { count: -100 }))).toBe(true);
      const ours = limits();
      expect(ours.give("api", { count: 100 }).value).toBe(5);
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
        const there = new RateLimiterRedis({ storeClient: client, points: 5, duration: 60 });
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
      // A name has no colon, so what comes before the first one is always the name.
      expect(refused(() => defineLimits({ "a:b": six }))).toBe(true);
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
});

describe.skipIf(noRedis)("@upstash/ratelimit", () => {
  type Client = ConstructorParameters<typeof Ratelimit>[0]["redis"];
  const asked: { args: unknown[] }[] = [];
  /** Upstash's client by shape, on this server; without the first line of a script, which only Upstash's takes. */
  const shape = (strip: boolean): Client =>
    ({
      evalsha: () => Promise.reject(new Error("NOSCRIPT")),
      eval: (script: string, keys: string[], args: unknown[]) => {
        asked.push({ args });
        const whole = strip ? script.replace(/^\s*#!lua[^\n]*\n/, "") : script;
        return client.eval(whole, keys.length, ...keys, ...args.map((arg) => `${arg ?? ""}`));
      },
      get: (key: string) => client.get(key),
    }) as unknown as Client;
  const limiter = (algorithm: ReturnType<typeof Ratelimit.fixedWindow>, prefix: string, strip = true) =>
    new Ratelimit({ redis: shape(strip), limiter: algorithm, prefix, ephemeralCache: false, timeout: 60_000 });
  const ours = (config: Parameters<typeof defineLimits>[0][string], prefix: string) =>
    defineLimits({ api: config }, { store: redis(client, { prefix }), timeout: 60_000 });

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
      // A window of a year: none ends meanwhile.
      const there = limiter(Ratelimit.fixedWindow(2, "365 d"), "fixed");
      for (let i = 0; i < 5; i++) expect((await there.limit("a")).success).toBe(i < 2);
      const [key = ""] = await client.keys("fixed:*");
      expect(await client.get(key)).toBe("5");
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
      // Its clock is this process's: half an interval later nothing has come.
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
    "a negative count": async () => {
      expect((await limiter(Ratelimit.tokenBucket(1, "1 d", 5), "negative").limit("a", { rate: -100 })).remaining).toBe(
        105,
      );
      expect(refused(() => defineLimits({ api: six }).limit("api", { count: -100 }))).toBe(true);
    },
    "whose clock": async () => {
      asked.length = 0;
      const before = Date.now();
      await limiter(Ratelimit.tokenBucket(1, "1 d", 5), "clock").limit("a");
      expect(asked[0]?.args.some((arg) => Number(arg) >= before && Number(arg) <= Date.now())).toBe(true);
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
});

test("every difference from Convex's limiter is in its tests", () => {
  const tests = readFileSync(join(root, "tests/convex/semantics.test.ts"), "utf8");
  const words = [
    "maxReserved: 0",
    "NaN",
    "negative count",
    "rate 0 and period 0",
    "steps back",
    "hour ahead",
    "start ahead of the clock",
    "two shards",
    "more than the capacity",
    "a denied reservation",
    "retryAt is a whole millisecond",
    "a count of 0",
    "`throws`",
  ];
  for (const word of words) expect(tests).toContain(word);
  // A count of NaN or below 0 is one row.
  expect(rows("convex")).toHaveLength(words.length - 1);
});
