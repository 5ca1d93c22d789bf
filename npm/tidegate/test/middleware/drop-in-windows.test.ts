/** The drop-in stores behind the peers' own middleware: windows, values and methods as those packages have them. */
import "reflect-metadata";
import { createServer } from "node:http";
import fastifyRateLimit, { type RateLimitPluginOptions } from "@fastify/rate-limit";
import { Controller, Get, Module } from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import { ThrottlerGuard, ThrottlerModule, type ThrottlerOptions } from "@nestjs/throttler";
import express from "express";
import { type Options, rateLimit } from "express-rate-limit";
import fastify from "fastify";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { HOUR, InputError, memory, MINUTE } from "../../src/index.ts";
import { expressRateLimitStore } from "../../src/middleware/express.ts";
import { fastifyRateLimitStore } from "../../src/middleware/fastify.ts";
import { honoRateLimiterStore } from "../../src/middleware/hono.ts";
import { throttlerStorage } from "../../src/middleware/nest.ts";
import type { Store } from "../../src/stores/contract.ts";
import { listen } from "./handler.ts";
import { later } from "./later.ts";

const START = Date.UTC(2026, 0, 1, 12, 0, 0, 123);
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: START }));
const pass = (ms: number): void => void vi.setSystemTime(Date.now() + ms);

const STORES: [string, () => Store][] = [
  ["a synchronous store", () => memory()],
  ["an asynchronous store", later],
];

describe.each(STORES)("on %s", (_, make) => {
  describe("express-rate-limit", () => {
    async function serve(options: Partial<Options>) {
      const app = express();
      const store = expressRateLimitStore({ store: make(), name: "web" });
      const limiter = rateLimit({ windowMs: MINUTE, limit: 2, standardHeaders: "draft-7", store, ...options });
      app.use(limiter);
      app.get("/", (_request, response) => void response.end());
      return { limiter, ...(await listen(createServer(app))) };
    }

    test("a window begins with the key's first request and lasts windowMs", async () => {
      const { url } = await serve({});
      expect((await fetch(url)).headers.get("ratelimit")).toBe("limit=2, remaining=1, reset=60");
      pass(MINUTE - 1);
      expect((await fetch(url)).status).toBe(200);
      expect((await fetch(url)).status).toBe(429);
      pass(1);
      const next = await fetch(url);
      expect([next.status, next.headers.get("ratelimit")]).toEqual([200, "limit=2, remaining=1, reset=60"]);
    });

    test("a denied request is sent the rest of its window as Retry-After", async () => {
      const { url } = await serve({ limit: 1 });
      await fetch(url);
      pass(10_000);
      expect((await fetch(url)).headers.get("retry-after")).toBe("50");
    });

    test("draft-8 reports the whole window", async () => {
      const { url } = await serve({ windowMs: 2 * HOUR, limit: 5, standardHeaders: "draft-8" });
      expect((await fetch(url)).headers.get("ratelimit")).toBe('"5-in-2hrs"; r=4; t=7200');
    });
  });

  test("hono-rate-limiter: a window begins with the key's first request", async () => {
    const app = new Hono();
    const store = honoRateLimiterStore({ store: make(), name: "web" });
    app.use(rateLimiter({ windowMs: MINUTE, limit: 1, keyGenerator: () => "user", store }));
    app.get("/", (context) => context.text("hello"));
    expect((await app.request("/")).headers.get("ratelimit-reset")).toBe("60");
    pass(MINUTE - 1);
    expect((await app.request("/")).status).toBe(429);
    pass(1);
    expect((await app.request("/")).status).toBe(200);
  });

  describe("@fastify/rate-limit", () => {
    async function serve(options: RateLimitPluginOptions) {
      const app = fastify();
      const store = fastifyRateLimitStore({ store: make(), name: "web" });
      await app.register(fastifyRateLimit, { max: 2, timeWindow: 1000, ...options, store });
      app.get("/", async () => "hello");
      const peek = app.createRateLimit();
      app.get("/peek", { config: { rateLimit: false } }, async (request) => peek(request, { increment: false }));
      return {
        /** The status of the next request, and the wait that the response reports, in seconds. */
        next: async (): Promise<[number, number]> => {
          const { statusCode, headers } = await app.inject("/");
          return [statusCode, Number(headers["x-ratelimit-reset"])];
        },
        peek: async () => (await app.inject("/peek")).json<{ isBanned: boolean }>(),
      };
    }

    test("a window begins with the key's first request", async () => {
      const { next } = await serve({ timeWindow: MINUTE });
      expect([await next(), await next(), await next()]).toEqual([
        [200, 60],
        [200, 60],
        [429, 60],
      ]);
      pass(MINUTE - 1);
      expect(await next()).toEqual([429, 1]);
      pass(1);
      expect(await next()).toEqual([200, 60]);
    });

    test("version 9, which passes max and ban to the store and no window, has the window of its settings", async () => {
      const Version9 = fastifyRateLimitStore({ store: make(), name: "web" });
      const hits = async (store: InstanceType<typeof Version9>, max: number, ban = -1) => {
        const of = await new Promise((answer) =>
          store.incr("user", (error, result) => answer(error ?? result), max, ban),
        );
        pass(max);
        return of;
      };
      const all = new Version9({ max: 3, timeWindow: MINUTE, continueExceeding: false });
      expect(await hits(all, 3)).toEqual({ current: 1, ttl: MINUTE });
      expect(await hits(all, 3)).toEqual({ current: 2, ttl: MINUTE - 3 });
      const route = all.child({ max: 1, timeWindow: 1000, continueExceeding: true });
      await hits(route, 1, 5);
      expect(await hits(route, 1, 5)).toEqual({ current: 2, ttl: 1000 });
      // A max that is equal to the window is not taken for it.
      const equal = all.child({ max: 1000, timeWindow: 1000, continueExceeding: true });
      expect(await hits(equal, 1000)).toEqual({ current: 1, ttl: 1000 });
      pass(-1);
      expect(await hits(equal, 1000)).toEqual({ current: 2, ttl: 1 });
    });

    test("continueExceeding denies for another window at each request over max", async () => {
      const { next, peek } = await serve({ continueExceeding: true, timeWindow: 10_000 });
      await next();
      expect(await peek()).toMatchObject({ remaining: 1, ttl: 10_000, isExceeded: false });
      pass(9000);
      expect([await next(), await next()]).toEqual([
        [200, 1],
        [429, 10],
      ]);
      // Past the end of the window of the first request.
      pass(9999);
      expect(await peek()).toMatchObject({ remaining: 0, ttl: 1, isExceeded: true });
      expect(await next()).toEqual([429, 10]);
      pass(10_000);
      expect(await peek()).toMatchObject({ remaining: 2, ttl: 0, isExceeded: false });
      expect(await next()).toEqual([200, 10]);
    });

    test.each([
      ["continueExceeding", 429, { continueExceeding: true }],
      ["exponentialBackoff", 429, { exponentialBackoff: true }],
      ["neither", 200, {}],
    ])("with %s, a request with a higher max than that of a denied one gets %i", async (_, higher, options) => {
      const app = fastify();
      const max = (request: { headers: Record<string, unknown> }) => (request.headers["plan"] === "pro" ? 5 : 1);
      const store = fastifyRateLimitStore({ store: make(), name: "web" });
      await app.register(fastifyRateLimit, { max: max as never, timeWindow: 1000, ...options, store });
      app.get("/", async () => "hello");
      const next = async (plan: string) => (await app.inject({ url: "/", headers: { plan } })).statusCode;
      expect([await next("free"), await next("free"), await next("pro")]).toEqual([200, 429, higher]);
      pass(2000);
      expect(await next("pro")).toBe(200);
    });

    test("continueExceeding counts requests over max for the ban", async () => {
      const { next, peek } = await serve({ continueExceeding: true, ban: 2, max: 1 });
      const statuses: number[] = [];
      const banned: boolean[] = [];
      for (let i = 0; i < 5; i++) {
        statuses.push((await next())[0]);
        banned.push((await peek()).isBanned);
        pass(900);
      }
      expect(statuses).toEqual([200, 429, 429, 403, 403]);
      expect(banned).toEqual([false, false, false, true, true]);
      pass(100);
      // A new window begins, with a new count of the requests over max.
      expect([(await next())[0], (await next())[0]]).toEqual([200, 429]);
    });

    test("exponentialBackoff doubles the wait at each request over max", async () => {
      const { next } = await serve({ exponentialBackoff: true, max: 1 });
      expect([await next(), await next(), await next(), await next()]).toEqual([
        [200, 1],
        [429, 1],
        [429, 2],
        [429, 4],
      ]);
      pass(3999);
      expect(await next()).toEqual([429, 8]);
      pass(8000);
      expect([await next(), await next()]).toEqual([
        [200, 1],
        [429, 1],
      ]);
    });

    test("exponentialBackoff stops at the longest period", async () => {
      const { next } = await serve({ exponentialBackoff: true, max: 0, timeWindow: 2 ** 38 });
      const waits: number[] = [];
      for (let i = 0; i < 4; i++) waits.push((await next())[1]);
      expect(waits).toEqual([38, 39, 40, 40].map((power) => Math.ceil(2 ** power / 1000)));
    });

    test.each([{}, { continueExceeding: true }, { exponentialBackoff: true }])(
      "timeWindow: 0 counts each request as the first, with %o",
      async (options) => {
        const { next } = await serve({ ...options, timeWindow: 0, max: 1 });
        expect([await next(), await next(), await next()]).toEqual([
          [200, 0],
          [200, 0],
          [200, 0],
        ]);
      },
    );
  });

  describe("@nestjs/throttler", () => {
    async function serve(throttler: ThrottlerOptions) {
      class Root {
        index(): string {
          return "hello";
        }
      }
      Controller()(Root);
      Get()(Root.prototype, "index", Object.getOwnPropertyDescriptor(Root.prototype, "index") as PropertyDescriptor);
      class App {}
      const storage = throttlerStorage({ store: make(), name: "nest" });
      Module({
        imports: [ThrottlerModule.forRoot({ throttlers: [throttler], storage })],
        controllers: [Root],
        providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
      })(App);
      const app = await NestFactory.create(App, { logger: false });
      await app.listen(0, "127.0.0.1");
      onTestFinished(() => app.close());
      const url = await app.getUrl();
      const next = async () => {
        const { status, headers } = await fetch(url);
        const [left, reset] = ["remaining", "reset"].map((field) => headers.get(`x-ratelimit-${field}`));
        return { status, left, reset, wait: Number(headers.get("retry-after")) };
      };
      return { next };
    }

    test("a window begins with the key's first request", async () => {
      const { next } = await serve({ ttl: MINUTE, limit: 2, blockDuration: 0 });
      expect(await next()).toMatchObject({ status: 200, left: "1", reset: "60" });
      pass(20_000);
      expect(await next()).toMatchObject({ status: 200, left: "0", reset: "40" });
      expect(await next()).toMatchObject({ status: 429, wait: 40 });
      pass(40_000);
      expect(await next()).toMatchObject({ status: 200, reset: "60" });
    });

    test("Retry-After suffices where blockDuration is shorter than the ttl", async () => {
      const { next } = await serve({ ttl: HOUR, limit: 2, blockDuration: 5000 });
      await next();
      await next();
      expect(await next()).toMatchObject({ status: 429, wait: 5 });
      pass(4999);
      expect(await next()).toMatchObject({ status: 429, wait: 1 });
      pass(1);
      // The hits from before the block are forgotten.
      expect([await next(), await next(), await next()]).toMatchObject([
        { status: 200, reset: "3600" },
        { status: 200 },
        { status: 429, wait: 5 },
      ]);
    });

    test("a block that is longer than the ttl lasts as long as Retry-After reports", async () => {
      const { next } = await serve({ ttl: 1000, limit: 1, blockDuration: MINUTE });
      await next();
      expect(await next()).toMatchObject({ status: 429, wait: 60 });
      pass(MINUTE - 1);
      expect(await next()).toMatchObject({ status: 429, wait: 1 });
      pass(1);
      expect(await next()).toMatchObject({ status: 200 });
    });

    test.each([
      ["fractional times", 1000.75, 2.5, 500.25, [false, false, true]],
      ["ttl 0", 0, 1, 0, [false, false, false]],
      ["an infinite limit", 1000, Number.POSITIVE_INFINITY, 1000, [false, false, false]],
      ["a negative limit", 1000, -1, 0, [true, true, true]],
    ])("%s", async (_title, ttl, limit, blockDuration, blocked) => {
      const storage = throttlerStorage({ store: make(), name: "nest" });
      const records = [];
      for (let i = 0; i < 3; i++) records.push(await storage.increment("k", ttl, limit, blockDuration, "default"));
      expect(records.map(({ isBlocked }) => isBlocked)).toEqual(blocked);
    });
  });
});

describe.each([
  ["expressRateLimitStore", expressRateLimitStore],
  ["honoRateLimiterStore", honoRateLimiterStore],
] as const)("%s", (_, make) => {
  test("counts in windows of a minute before init, and where windowMs is undefined", () => {
    const store = make();
    expect(store.increment("k")).toEqual({ totalHits: 1, resetTime: new Date(START + MINUTE) });
    store.init({ windowMs: undefined as never });
    expect(store.increment("k")).toEqual({ totalHits: 2, resetTime: new Date(START + MINUTE) });
  });

  test("rounds a fractional windowMs down, and ends a window that is longer than any at 2^40 ms", () => {
    const lasts = (windowMs: number): number => {
      const store = make();
      store.init({ windowMs });
      return store.increment("k").resetTime.getTime() - START;
    };
    expect([1500.75, 1.5, Number.POSITIVE_INFINITY].map(lasts)).toEqual([1500, 1, 2 ** 40]);
  });

  test.each([0, 0.5, -1])("a windowMs of %d counts each hit as the first", (windowMs) => {
    const store = make();
    store.init({ windowMs });
    for (let i = 0; i < 3; i++) expect(store.increment("k")).toEqual({ totalHits: 1, resetTime: new Date(START) });
    store.decrement("k");
    store.resetKey("k");
    expect(store.get("k")).toBeUndefined();
  });

  test.each([Number.NaN, "60000", null])("refuses a windowMs of %o", (windowMs) => {
    const init = () => make().init({ windowMs: windowMs as never });
    if (windowMs === null) expect(init).not.toThrow();
    else expect(init).toThrow(new InputError("windowMs", "a number of ms", windowMs));
  });

  test("a store that is shared by two limiters accepts one length only, also where it is a fraction", () => {
    const store = make();
    store.init({ windowMs: 1000.5 });
    store.init({ windowMs: 1000.5 });
    expect(() => store.init({ windowMs: 2000 })).toThrow("`windowMs` must be 1000.5, as the first limiter");
  });

  test("counts any primitive key, and refuses objects, whose text is the same", () => {
    const store = make();
    const increment = (key: unknown) => store.increment(key as string).totalHits;
    expect([7, undefined, null, true, 8n, ""].map(increment)).toEqual([1, 1, 1, 1, 1, 1]);
    expect([7, undefined, null, true, 8n, ""].map(increment)).toEqual([2, 2, 2, 2, 2, 2]);
    expect(store.get(7 as never)?.totalHits).toBe(2);
    for (const key of [{}, ["a"], () => "k", Symbol("k")])
      expect(() => increment(key)).toThrow(expect.objectContaining({ name: "InputError", field: "key" }));
  });

  test("resetAll and shutdown forget every key of a drop-in store with its own memory", () => {
    const store = make();
    for (const forget of [store.resetAll, store.shutdown]) {
      for (const key of ["a", "b"]) expect(store.increment(key).totalHits).toBe(1);
      forget();
    }
    expect(store.get("a")).toBeUndefined();
  });

  test("shutdown leaves the counts of a store that it shares; resetAll is absent there", () => {
    const backing = memory();
    const store = make({ store: backing, name: "a" });
    store.increment("k");
    store.shutdown();
    expect(store.increment("k").totalHits).toBe(2);
    expect("resetAll" in store).toBe(false);
  });
});

test("an asynchronous store returns promises also where no time passes", async () => {
  const store = expressRateLimitStore({ store: later() as never, name: "a" });
  store.init({ windowMs: 0 });
  const answers: unknown[] = [store.increment("k"), store.get("k"), store.decrement("k"), store.resetKey("k")];
  for (const answer of answers) expect(answer).toBeInstanceOf(Promise);
});
