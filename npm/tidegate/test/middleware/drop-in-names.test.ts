/** What the drop-in stores count separately, and the names that they refuse. */
import fastifyRateLimit from "@fastify/rate-limit";
import fastify, { type FastifyInstance } from "fastify";
import { rateLimit } from "express-rate-limit";
import { rateLimiter } from "hono-rate-limiter";
import { describe, expect, test } from "vitest";
import { HOUR, InputError, memory, MINUTE, SECOND } from "../../src/index.ts";
import { expressRateLimitStore } from "../../src/middleware/express.ts";
import { fastifyRateLimitStore } from "../../src/middleware/fastify.ts";
import { honoRateLimiterStore } from "../../src/middleware/hono.ts";
import { throttlerStorage } from "../../src/middleware/nest.ts";
import type { HitOptions } from "../../src/middleware/drop-in/options.ts";
import type { Store } from "../../src/stores/contract.ts";

const DROP_INS: Record<string, (options?: HitOptions<Store>) => unknown> = {
  expressRateLimitStore,
  honoRateLimiterStore,
  fastifyRateLimitStore,
  throttlerStorage,
};

describe.each(Object.entries(DROP_INS))("%s", (_, make) => {
  test("requires a name with a store", () => {
    expect(() => make({ store: memory() })).toThrow(
      new InputError(
        "name",
        'given with a `store`, such as { store, name: "login" }: each limit needs a name of its own',
        undefined,
      ),
    );
  });

  test("refuses a name that another one has on the same store object", () => {
    const store = memory();
    make({ store, name: "login" });
    expect(() => make({ store, name: "login" })).toThrow(
      /^`name` must be a name that no other drop-in store has on this `store`: .*; got "login"$/,
    );
    make({ store, name: "poll" });
    make({ store: memory(), name: "login" });
  });

  test("needs no name in memory, where each has a store of its own", () => {
    make();
    make({});
    make({ name: "login" });
  });

  test.each([
    ["options", null],
    ["options", "login"],
    ["name", { name: "my login" }],
    ["name", { store: memory(), name: 7 }],
    ["store", { store: "redis://localhost", name: "a" }],
    ["prefix", { store: memory(), prefix: "a" }],
  ])("refuses a wrong `%s`: %o", (field, options) => {
    expect(() => make(options as never)).toThrow(expect.objectContaining({ name: "InputError", field }));
  });
});

describe("a store of one limiter, passed to a second one with another window", () => {
  const sentence =
    "`windowMs` must be 60000, as the first limiter of this store has it: each limiter needs a store of its own; got 3600000";

  test("hono-rate-limiter throws", () => {
    const store = honoRateLimiterStore();
    const limiter = (windowMs: number) => rateLimiter({ windowMs, keyGenerator: () => "user", store });
    limiter(MINUTE);
    limiter(MINUTE);
    expect(() => limiter(HOUR)).toThrow(sentence);
  });

  test("express-rate-limit logs what init throws", () => {
    const store = expressRateLimitStore();
    const logged: unknown[] = [];
    const logger = { error: (error: unknown) => void logged.push(error), warn: () => {} };
    rateLimit({ windowMs: MINUTE, store, logger });
    expect(logged).toEqual([]);
    rateLimit({ windowMs: HOUR, store, logger, validate: false });
    expect(logged).toMatchObject([{ name: "InputError", message: sentence }]);
  });
});

describe("fastifyRateLimitStore in memory", () => {
  async function server(register: (app: FastifyInstance) => void): Promise<FastifyInstance> {
    const app = fastify();
    await app.register(fastifyRateLimit, { max: 100, timeWindow: HOUR, store: fastifyRateLimitStore() });
    register(app);
    return app;
  }
  const statuses = async (app: FastifyInstance, times: number, request: { url: string; headers?: object }) => {
    const all: number[] = [];
    for (let i = 0; i < times; i++) all.push((await app.inject(request as { url: string })).statusCode);
    return all;
  };
  const once = { config: { rateLimit: { max: 1, timeWindow: HOUR } } };
  const hello = async () => "hello";

  test("counts a route, a shared handler and a limiter separately", async () => {
    const app = await server((app) => {
      app.get("/route", once, hello);
      app.get(
        "/handler",
        { config: { rateLimit: false }, preHandler: app.rateLimit({ max: 1, timeWindow: HOUR }) },
        hello,
      );
      const check = app.createRateLimit({ max: 1, timeWindow: HOUR });
      app.get("/limiter", { config: { rateLimit: false } }, async (request) => check(request));
    });
    expect(await statuses(app, 2, { url: "/route" })).toEqual([200, 429]);
    expect(await statuses(app, 2, { url: "/handler" })).toEqual([200, 429]);
    expect((await app.inject("/limiter")).json()).toMatchObject({ isExceeded: false, remaining: 0 });
    expect((await app.inject("/limiter")).json()).toMatchObject({ isExceeded: true });
  });

  test("counts one handler on two routes together", async () => {
    const app = await server((app) => {
      const preHandler = app.rateLimit({ max: 2, timeWindow: HOUR });
      for (const url of ["/a", "/b"]) app.get(url, { config: { rateLimit: false }, preHandler }, hello);
    });
    expect([...(await statuses(app, 1, { url: "/a" })), ...(await statuses(app, 2, { url: "/b" }))]).toEqual([
      200, 200, 429,
    ]);
  });

  test("counts two routes of one URL that differ by host separately", async () => {
    const app = await server((app) => {
      for (const host of ["a.test", "b.test"]) app.get("/", { constraints: { host }, ...once }, hello);
    });
    for (const host of ["a.test", "b.test"])
      expect(await statuses(app, 2, { url: "/", headers: { host } })).toEqual([200, 429]);
  });

  test("reads no count under another window where a route's window changes", async () => {
    let timeWindow = SECOND;
    const app = await server((app) => {
      app.get("/", { config: { rateLimit: { max: 3, timeWindow: () => timeWindow } } }, hello);
    });
    await statuses(app, 5, { url: "/" });
    timeWindow = HOUR;
    expect(await statuses(app, 5, { url: "/" })).toEqual([200, 200, 200, 429, 429]);
  });
});
