import { createServer } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import fastifyRateLimit from "@fastify/rate-limit";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import fastify from "fastify";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import type { Server } from "node:net";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits, MINUTE, memory } from "../../src/index.ts";
import { expressRateLimitStore } from "../../src/middleware/express.ts";
import { fastifyRateLimitStore } from "../../src/middleware/fastify.ts";
import { honoRateLimiterStore, rateLimitBinding } from "../../src/middleware/hono.ts";
import { throttlerStorage } from "../../src/middleware/nest.ts";
import type { Store } from "../../src/stores/contract.ts";
import { behind } from "../behind.ts";
import { eventually } from "./eventually.ts";
import { listen } from "./handler.ts";
import { later } from "./later.ts";

/** Every test runs with a store that answers at once, and with one that answers with promises. */
const STORES: [string, () => Store][] = [
  ["at once", () => memory()],
  ["later", later],
];
const statuses = async (url: string, times: number, headers: Record<string, string> = {}) => {
  const all: number[] = [];
  for (let i = 0; i < times; i++) all.push((await fetch(url, { headers })).status);
  return all;
};

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
const pass = (ms: number): void => void vi.setSystemTime(Date.now() + ms);

describe.each(STORES)("express-rate-limit, with a store that answers %s", (_, make) => {
  const serve = async (options: Parameters<typeof expressRateLimit>[0]) => {
    const app = express();
    const limiter = expressRateLimit({ standardHeaders: "draft-7", legacyHeaders: true, ...options });
    app.use(limiter);
    app.get(
      "/",
      (request, response) =>
        void response
          .status(Number(request.query["status"] ?? 200))
          .json((request as never as { rateLimit: object }).rateLimit),
    );
    return { limiter, ...(await listen(createServer(app))) };
  };

  test("counts, denies with its fields, and resets a key", async () => {
    const logged = vi.spyOn(console, "error");
    const { url, limiter } = await serve({
      windowMs: 60_000,
      limit: 3,
      store: expressRateLimitStore({ store: make(), name: "web" }),
    });
    const first = await fetch(url);
    expect(await first.json()).toMatchObject({ limit: 3, used: 1, remaining: 2 });
    expect(first.headers.get("ratelimit")).toMatch(/^limit=3, remaining=2, reset=\d+$/);
    expect(await statuses(url, 4)).toEqual([200, 200, 429, 429]);
    const denied = await fetch(url);
    expect(Number(denied.headers.get("retry-after"))).toBeGreaterThanOrEqual(0);
    expect(denied.headers.get("x-ratelimit-remaining")).toBe("0");
    const known = await limiter.getKey("127.0.0.1");
    expect(known?.totalHits).toBe(6);
    await limiter.resetKey("127.0.0.1");
    expect(await limiter.getKey("127.0.0.1")).toBeUndefined();
    expect(await statuses(url, 1)).toEqual([200]);
    // It checks its stores by itself, and complains here.
    expect(logged.mock.calls).toEqual([]);
  });

  test("skipFailedRequests takes hits back, and a window ends", async () => {
    const store = expressRateLimitStore({ store: make(), name: "web" });
    const { url, limiter } = await serve({ windowMs: 700, limit: 2, skipFailedRequests: true, store });
    expect(await statuses(`${url}/?status=500`, 3)).toEqual([500, 500, 500]);
    await eventually(async () => expect((await limiter.getKey("127.0.0.1"))?.totalHits ?? 0).toBe(0));
    expect(await statuses(url, 3)).toEqual([200, 200, 429]);
    pass(700);
    expect(await statuses(url, 1)).toEqual([200]);
  });

  test("two limiters of different names on one store count separately", async () => {
    const shared = make();
    const a = await serve({ windowMs: 60_000, limit: 1, store: expressRateLimitStore({ store: shared, name: "a" }) });
    const b = await serve({ windowMs: 60_000, limit: 1, store: expressRateLimitStore({ store: shared, name: "b" }) });
    expect([await statuses(a.url, 2), await statuses(b.url, 2)]).toEqual([
      [200, 429],
      [200, 429],
    ]);
  });

  test("takes keys of any length and content", async () => {
    const store = expressRateLimitStore({ store: make(), name: "web" });
    store.init({ windowMs: 60_000 });
    for (const key of ["__proto__", "", "k".repeat(100_000), `${"k".repeat(100_000)}2`])
      expect((await store.increment(key)).totalHits).toBe(1);
  });
});

const failing = () => behind(() => Promise.reject(new Error("gone")), "down");

test("express-rate-limit's passOnStoreError decides about requests while the store fails", async () => {
  const status = async (passOnStoreError: boolean) => {
    const app = express();
    const store = expressRateLimitStore({ store: failing(), name: `pass-${passOnStoreError}` });
    app.use(expressRateLimit({ store, passOnStoreError, logger: { error() {}, warn() {} } as never }));
    app.get("/", (_request, response) => void response.end());
    app.use(((_error, _request, response, _next) => void response.status(500).end()) as express.ErrorRequestHandler);
    const { url } = await listen(createServer(app));
    return (await statuses(url, 1))[0];
  };
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  expect([await status(false), await status(true)]).toEqual([500, 200]);
  expect(logged.mock.calls.map(([message]) => String(message).replace(/^.*; /, ""))).toEqual(
    Array(2).fill("until down answers again, its calls are rejected, and express-rate-limit passes or fails them"),
  );
});

describe.each(STORES)("hono-rate-limiter, with a store that answers %s", (_, make) => {
  const serve = async (middleware: Parameters<Hono["use"]>[1]) => {
    const app = new Hono();
    app.use(middleware);
    app.get("/", (context) => context.body(null, Number(context.req.query("status") ?? 200) as 200));
    return listen(createAdaptorServer({ fetch: app.fetch }) as Server);
  };
  const keyGenerator = (context: { req: { header(name: string): string | undefined } }) =>
    context.req.header("x-user") ?? "";

  test("the store counts, denies and takes back", async () => {
    const store = honoRateLimiterStore({ store: make(), name: "web" });
    const { url } = await serve(
      rateLimiter({ windowMs: 60_000, limit: 2, keyGenerator, skipFailedRequests: true, store }),
    );
    const answer = await fetch(url, { headers: { "x-user": "a" } });
    expect(answer.headers.get("ratelimit-remaining")).toBe("1");
    expect(await statuses(`${url}/?status=500`, 3, { "x-user": "a" })).toEqual([500, 500, 500]);
    expect(await statuses(url, 3, { "x-user": "a" })).toEqual([200, 429, 429]);
    expect(await statuses(url, 1, { "x-user": "b" })).toEqual([200]);
  });

  test("the binding reports whether a request is allowed", async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 2, period: MINUTE } }, { store: make() });
    const { url } = await serve(rateLimiter({ binding: rateLimitBinding(limits, "api"), keyGenerator }) as never);
    expect(await statuses(url, 3, { "x-user": "a" })).toEqual([200, 200, 429]);
  });
});

describe.each(STORES)("@fastify/rate-limit, with a store that answers %s", (_, make) => {
  test("counts, bans, reads, and keeps routes apart", async () => {
    const app = fastify();
    await app.register(fastifyRateLimit, {
      max: 2,
      timeWindow: 60_000,
      ban: 1,
      store: fastifyRateLimitStore({ store: make(), name: "web" }),
    });
    app.get("/", async () => "hello");
    app.get("/own", { config: { rateLimit: { max: 1, timeWindow: 60_000 } } }, async () => "hello");
    const peek = app.createRateLimit();
    app.get("/peek", { config: { rateLimit: false } }, async (request) => peek(request, { increment: false }));
    const get = async (url: string) => (await app.inject({ url })).statusCode;
    const first = await app.inject({ url: "/" });
    expect(first.headers).toMatchObject({ "x-ratelimit-limit": "2", "x-ratelimit-remaining": "1" });
    expect(Number(first.headers["x-ratelimit-reset"])).toBeLessThanOrEqual(60);
    expect([await get("/"), await get("/"), await get("/")]).toEqual([200, 429, 403]);
    expect([await get("/own"), await get("/own")]).toEqual([200, 429]);
    expect((await app.inject({ url: "/peek" })).json()).toMatchObject({ remaining: 0, isExceeded: true });
  });
});

test("skipOnError lets requests through where the store fails", async () => {
  const app = fastify();
  await app.register(fastifyRateLimit, {
    global: false,
    store: fastifyRateLimitStore({ store: failing(), name: "web" }),
  });
  // The plugin passes it on to the store, and does not declare it here.
  const stretched = { max: 1, continueExceeding: true };
  const peek = app.createRateLimit(stretched);
  app.get("/peek", { config: { rateLimit: false } }, (request) => peek(request, { increment: false }));
  const settings = ["groupId", "continueExceeding", "exponentialBackoff"];
  for (const setting of settings)
    for (const skipOnError of [true, false]) {
      const rateLimit = { skipOnError, [setting]: setting === "groupId" ? "plain" : true };
      app.get(`/${setting}/${skipOnError}`, { config: { rateLimit } }, async () => "hello");
    }
  const status = async (url: string) => (await app.inject(url)).statusCode;
  for (const setting of settings)
    expect([await status(`/${setting}/true`), await status(`/${setting}/false`)]).toEqual([200, 500]);
  expect(await status("/peek")).toBe(500);
});

test("the storage of @nestjs/throttler rejects a hit that a failing store does not count", async () => {
  const storage = throttlerStorage({ store: failing(), name: "web" });
  await expect(storage.increment("k", 1000, 1, 0, "short")).rejects.toThrow("gone");
});

describe.each(STORES)("@nestjs/throttler, with a storage that answers %s", (_, make) => {
  test("a block lasts for blockDuration, is begun once, and ends", async () => {
    const storage = throttlerStorage({ store: make(), name: "nest" });
    const hit = () => storage.increment("k", 200, 1, 6000, "short");
    expect(await hit()).toMatchObject({ totalHits: 1, isBlocked: false, timeToBlockExpire: 0 });
    expect(await hit()).toMatchObject({ totalHits: 2, isBlocked: true, timeToBlockExpire: 6 });
    const together = await Promise.all([hit(), hit(), hit()]);
    expect(together.every(({ isBlocked }) => isBlocked)).toBe(true);
    pass(2000);
    expect(await hit()).toMatchObject({ isBlocked: true, timeToBlockExpire: 4 });
    pass(3999);
    expect(await hit()).toMatchObject({ isBlocked: true, timeToBlockExpire: 1 });
    pass(1);
    expect((await hit()).isBlocked).toBe(false);
  });

  test("without a block, a denial has the end of its window; throttlers are apart", async () => {
    const storage = throttlerStorage({ store: make(), name: "nest" });
    const hit = (name: string, limit = 1) => storage.increment("k", 60_000, limit, 0, name);
    await hit("a");
    const { isBlocked, timeToExpire, timeToBlockExpire } = await hit("a");
    expect([isBlocked, timeToBlockExpire]).toEqual([true, Math.max(timeToExpire, 1)]);
    expect((await hit("b")).isBlocked).toBe(false);
    expect((await hit("c", 0)).isBlocked).toBe(true);
  });

  test("the guard of version 5, which passes no limit, gets an error that names the version to use", async () => {
    const { increment } = throttlerStorage({ store: make(), name: "nest" });
    const five = increment as (key: string, ttl: number) => Promise<unknown>;
    await expect(five("k", 60_000)).rejects.toThrow(
      "`limit` must be a number of hits, which the guard passes since version 6",
    );
  });
});
