/** The limiters of other packages, counting in one real Redis: each limit has keys of its own, and servers share them. */
import { createServer } from "node:http";
import fastifyRateLimit from "@fastify/rate-limit";
import express from "express";
import { rateLimit } from "express-rate-limit";
import fastify, { type FastifyInstance } from "fastify";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { HOUR, MINUTE, SECOND } from "tidegate";
import { expressRateLimitStore } from "tidegate/express";
import { fastifyRateLimitStore } from "tidegate/fastify";
import { honoRateLimiterStore } from "tidegate/hono";
import { throttlerStorage } from "tidegate/nest";
import { redis } from "tidegate/redis";
import { listen } from "../../../npm/tidegate/test/middleware/handler.ts";
import { client, withServer } from "./fixture.ts";

withServer();
beforeEach(() => {
  // Of a drop-in a call has the default timeout, which does not pass here, however slow the server is.
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
});

const repeat = async <T>(times: number, call: () => Promise<T>): Promise<T[]> => {
  const results: T[] = [];
  for (let i = 0; i < times; i++) results.push(await call());
  return results;
};

describe("@fastify/rate-limit", () => {
  /** One server of a fleet: `/login` and `/poll` have limiters that the plugin makes without a route. */
  async function fleetServer(limits: Record<string, { max: number; timeWindow: number }>): Promise<FastifyInstance> {
    const app = fastify();
    const store = fastifyRateLimitStore({ store: redis(client), name: "web" });
    await app.register(fastifyRateLimit, { global: false, store });
    for (const [url, limit] of Object.entries(limits)) {
      app.get(url, { preHandler: app.rateLimit(limit) }, async () => "hello");
    }
    return app;
  }
  const get = async (app: FastifyInstance, url: string) => (await app.inject({ url })).statusCode;

  test("grants 3 logins an hour beside a route of 50 requests a second", async () => {
    const app = await fleetServer({
      "/login": { max: 3, timeWindow: HOUR },
      "/poll": { max: 50, timeWindow: SECOND },
    });
    const logins = await repeat(9, async () => {
      await get(app, "/poll");
      return get(app, "/login");
    });
    expect(logins).toEqual([200, 200, 200, 429, 429, 429, 429, 429, 429]);
  });

  test("counts two routes of equal limits separately", async () => {
    const app = await fleetServer({ "/a": { max: 2, timeWindow: HOUR }, "/b": { max: 2, timeWindow: HOUR } });
    expect(await repeat(3, () => get(app, "/a"))).toEqual([200, 200, 429]);
    expect(await repeat(3, () => get(app, "/b"))).toEqual([200, 200, 429]);
  });

  test("counts one route on two servers together", async () => {
    const limits = { "/a": { max: 2, timeWindow: HOUR }, "/b": { max: 2, timeWindow: HOUR } };
    const [one, other] = [await fleetServer(limits), await fleetServer(limits)];
    expect([await get(one, "/b"), await get(other, "/b"), await get(one, "/b"), await get(other, "/b")]).toEqual([
      200, 200, 429, 429,
    ]);
    expect([await get(one, "/a"), await get(other, "/a")]).toEqual([200, 200]);
  });
});

test("@fastify/rate-limit: two servers extend one block with continueExceeding", async () => {
  const server = async () => {
    const app = fastify();
    const store = fastifyRateLimitStore({ store: redis(client), name: "web" });
    await app.register(fastifyRateLimit, { max: 1, timeWindow: HOUR, ban: 1, continueExceeding: true, store });
    app.get("/", async () => "hello");
    return app;
  };
  const servers = [await server(), await server()];
  const next = async (index: number) => {
    const { statusCode, headers } = await (servers[index] as FastifyInstance).inject("/");
    // In minutes: seconds may pass before the header is made.
    return [statusCode, Math.ceil(Number(headers["x-ratelimit-reset"]) / 60)];
  };
  expect([await next(0), await next(1), await next(0), await next(1)]).toMatchObject([
    [200, 60],
    [429, 60],
    [403, 60],
    [403, 60],
  ]);
  // Each state expires: the block's and the excess count's with the block.
  for (const key of await client.keys("*")) expect(await client.pttl(key)).toBeLessThanOrEqual(HOUR + 1000);
});

describe("express-rate-limit", () => {
  test("a window begins with the key's first request", async () => {
    const store = expressRateLimitStore({ store: redis(client), name: "api" });
    store.init({ windowMs: HOUR });
    const now = Date.now();
    const { resetTime } = await store.increment("k");
    expect(resetTime.getTime()).toBeGreaterThanOrEqual(now + HOUR);
    expect((await store.increment("k")).resetTime).toEqual(resetTime);
  });

  test("grants the first login after many polls", async () => {
    const app = express();
    const limited = (name: string, limit: number) =>
      rateLimit({ windowMs: MINUTE, limit, store: expressRateLimitStore({ store: redis(client), name }) });
    app.get("/poll", limited("poll", 1000), (_request, response) => void response.end());
    app.get("/login", limited("login", 3), (_request, response) => void response.end());
    const { url } = await listen(createServer(app));
    const status = async (path: string) => (await fetch(url + path)).status;
    await repeat(5, () => status("/poll"));
    expect(await repeat(4, () => status("/login"))).toEqual([200, 200, 200, 429]);
  });

  test("two windows under one name are two counts", async () => {
    const store = (windowMs: number) => {
      const made = expressRateLimitStore({ store: redis(client), name: "api" });
      made.init({ windowMs });
      return made;
    };
    const [hour, second] = [store(HOUR), store(SECOND)];
    await repeat(5, async () => second.increment("k"));
    expect((await hour.increment("k")).totalHits).toBe(1);
  });

  test("two servers of one name and window share a count", async () => {
    const one = expressRateLimitStore({ store: redis(client), name: "api" });
    const other = expressRateLimitStore({ store: redis(client), name: "api" });
    for (const store of [one, other]) store.init({ windowMs: HOUR });
    await one.increment("k");
    expect((await other.increment("k")).totalHits).toBe(2);
  });
});

test("hono-rate-limiter counts two windows under one name separately", async () => {
  const app = new Hono();
  for (const [path, limit, windowMs] of [
    ["/login", 3, HOUR],
    ["/poll", 50, SECOND],
  ] as const) {
    const store = honoRateLimiterStore({ store: redis(client), name: "web" });
    app.use(path, rateLimiter({ windowMs, limit, keyGenerator: () => "user", store }));
    app.get(path, (context) => context.text("hello"));
  }
  const logins = await repeat(5, async () => {
    await app.request("/poll");
    return (await app.request("/login")).status;
  });
  expect(logins).toEqual([200, 200, 200, 429, 429]);
});

describe("@nestjs/throttler", () => {
  test("a request at the end of a block that is shorter than the ttl is granted", async () => {
    const storage = throttlerStorage({ store: redis(client), name: "nest" });
    const hit = () => storage.increment("user", HOUR, 1, 900, "default");
    await hit();
    const { timeToBlockExpire } = await hit();
    expect(timeToBlockExpire).toBeLessThanOrEqual(1);
    await sleep(timeToBlockExpire * 1000);
    expect(await hit()).toMatchObject({ totalHits: 1, isBlocked: false });
  });

  test("grants 3 an hour where the same throttler also counts by the second", async () => {
    const storage = throttlerStorage({ store: redis(client), name: "nest" });
    const blocked = await repeat(9, async () => {
      await storage.increment("user", SECOND, 50, 0, "default");
      return (await storage.increment("user", HOUR, 3, 0, "default")).isBlocked;
    });
    expect(blocked).toEqual([false, false, false, true, true, true, true, true, true]);
  });

  test("keeps the hits where a user's limit changes", async () => {
    const storage = throttlerStorage({ store: redis(client), name: "nest" });
    const hit = (limit: number) => storage.increment("user", HOUR, limit, 0, "default");
    await repeat(3, () => hit(10));
    expect((await hit(3)).isBlocked).toBe(true);
    expect(await hit(10)).toMatchObject({ totalHits: 4, isBlocked: false });
  });
});
