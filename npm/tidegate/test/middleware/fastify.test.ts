import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, constants } from "node:http2";
import { text } from "node:stream/consumers";
import fastify5, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyTypeProvider,
} from "fastify";
import fastify4 from "fastify4";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type FastifyOptions, type PluginOptions, rateLimit, rateLimitPlugin } from "../../src/middleware/fastify.ts";
import { behind } from "../behind.ts";
import { eventually } from "./eventually.ts";
import { headerOf, orders } from "./handler.ts";
import { optionsFor } from "./options-for.ts";
import { middlewareSuite } from "./suite.ts";

describe.each([
  ["4", fastify4 as unknown as typeof fastify5],
  ["5", fastify5],
] as const)("Fastify %s", (version, fastify) => {
  middlewareSuite("the hook", async (limiter, options) => {
    const app = fastify({ forceCloseConnections: true });
    for (const option of options) {
      const given = optionsFor(
        option,
        (request: FastifyRequest, name) => headerOf(request.raw, name),
        ({ status, text }, _, reply: FastifyReply) => {
          reply.code(status);
          return text;
        },
      );
      const limit = rateLimit(limiter, given as FastifyOptions<string>);
      app.addHook("onRequest", limit);
      if (option.twice === true) app.addHook("preHandler", limit);
    }
    app.get("/", (request, reply) => {
      const { status, hangs } = orders(request.url);
      if (!hangs) void reply.code(status).send(JSON.stringify(request.rateLimit ?? null));
    });
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    return { url, server: app.server, close: () => app.close() };
  });

  test("a number behind a #, which its handlers read, costs what it states", async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 100, period: MINUTE } }, { now: () => 1e12 });
    const app = fastify({ forceCloseConnections: true });
    app.addHook("onRequest", rateLimit(limits, { name: "api", key: "k", count: { query: "n", max: 9 } }));
    app.get("/list", (request) => (request.query as { n?: string }).n);
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(() => app.close());
    // Not by `fetch`, which sends no fragment.
    const read = async (path: string) => {
      const [response] = (await once(request(url, { path }).end(), "response")) as [IncomingMessage];
      return text(response);
    };
    expect([await read("/list?a#&n=4"), await read("/list#n=4")]).toEqual(["4", "4"]);
    expect(limits.getValue("api", { key: "k" }).value).toBe(100 - 8);
  });

  /** Stands for TypeBox's or Zod's: the type of what a schema's `of` describes. */
  interface Provider extends FastifyTypeProvider {
    validator: this["schema"] extends { of: infer T } ? T : unknown;
  }

  test("a route with a hook of its own has the types of its type provider", () => {
    const schema = { querystring: { type: "object", of: { n: 1 } } } as const;
    const hook = rateLimit(define(), { name: "api", key: (request) => request.ip });
    const app = fastify().withTypeProvider<Provider>();
    app.get("/", { schema, onRequest: hook }, ({ query }) => query.n satisfies number);
    app.get("/list", { schema, preHandler: [hook] }, ({ query }) => query.n satisfies number);
    const two = fastify({ http2: true }).withTypeProvider<Provider>();
    two.get("/", { schema, onRequest: hook }, ({ query, raw }) => `${query.n satisfies number} ${raw.stream.id}`);
  });

  test("the plugin is one of another copy of Fastify too, as NestJS has its own, which other plugins have not extended", () => {
    type Another = Omit<FastifyInstance, "withTypeProvider">;
    type Plugin = (app: Another, options: PluginOptions, done: (error?: Error) => void) => void;
    expect(rateLimitPlugin satisfies Plugin).toBe(rateLimitPlugin);
  });

  const config = { kind: "token bucket", rate: 1, period: MINUTE } as const;
  const define = () => defineLimits({ api: config, search: config });

  test("the plugin limits the routes of its instance and its children, each by its own config, and not those of a sibling", async () => {
    const app = fastify();
    await app.register(async (inner) => {
      await inner.register(async (child) => void child.get("/earlier", () => "child"));
      await inner.register(rateLimitPlugin, { limiter: define(), name: "api" });
      inner.get("/api", (request) => request.rateLimit.remaining);
      inner.get("/search", { config: { rateLimit: { name: "search" } } }, (request) => request.rateLimit.policy.name);
      inner.get("/health", { config: { rateLimit: false } }, () => "well");
    });
    app.get("/outside", () => "free");
    const twice = async (url: string) => [await app.inject(url), await app.inject(url)];
    const seen = async (url: string) =>
      (await twice(url)).map(({ statusCode, body }) => [statusCode, statusCode === 200 ? body : ""]);
    expect(await seen("/api")).toEqual([
      [200, "0"],
      [429, ""],
    ]);
    expect(await seen("/earlier")).toEqual([
      [429, ""],
      [429, ""],
    ]);
    expect(await seen("/search")).toEqual([
      [200, "search"],
      [429, ""],
    ]);
    expect(await seen("/health")).toEqual([
      [200, "well"],
      [200, "well"],
    ]);
    expect(await seen("/outside")).toEqual([
      [200, "free"],
      [200, "free"],
    ]);
  });

  test("a route's own limit is taken once where two plugins see the route, and the limits of both elsewhere", async () => {
    const limits = defineLimits({ api: { ...config, rate: 9 }, search: { ...config, rate: 9 } }, { now: () => 0 });
    const app = fastify();
    await app.register(rateLimitPlugin, { limiter: limits, name: "api", key: "k" });
    await app.register(async (inner) => {
      await inner.register(rateLimitPlugin, { limiter: limits, name: "search", key: "k", hook: "preHandler" });
      const upload = { name: "upload", config: { ...config, rate: 9 } };
      inner.get("/own", { config: { rateLimit: upload } }, (request) => request.rateLimit.remaining);
      inner.get("/both", () => "hello");
      inner.get("/each", { config: { rateLimit: { count: 2 } } }, () => "hello");
    });
    expect([(await app.inject("/own")).body, (await app.inject("/own")).body]).toEqual(["8", "7"]);
    expect((await app.inject({ method: "HEAD", url: "/own" })).headers["ratelimit"]).toMatch(/r=6/);
    const left = () => [limits.getValue("api", { key: "k" }).value, limits.getValue("search", { key: "k" }).value];
    expect(left()).toEqual([9, 9]);
    await app.inject("/both");
    expect(left()).toEqual([8, 8]);
    await app.inject("/each");
    expect(left()).toEqual([6, 6]);
  });

  test("without await the plugin limits the routes that follow it too, each by its own config", async () => {
    const limits = defineLimits({ api: { ...config, rate: 9 }, search: { ...config, rate: 9 } }, { now: () => 0 });
    const app = fastify();
    for (const name of ["api", "search"]) void app.register(rateLimitPlugin, { limiter: limits, name, key: "k" });
    app.get("/", () => "hello");
    app.get("/own", { config: { rateLimit: { name: "search", key: "k", count: 3 } } }, () => "found");
    app.get("/health", { config: { rateLimit: false } }, () => "well");
    app.get("/wrong", { config: { rateLimit: { name: "seach" } } }, () => "never");
    void app.register(async (child) => void child.get("/child", () => "hello"));
    app.setNotFoundHandler((_, reply) => void reply.code(404).send("none"));
    const left = async (url: string) => {
      const { statusCode } = await app.inject(url);
      return [statusCode, ...(["api", "search"] as const).map((name) => limits.getValue(name, { key: "k" }).value)];
    };
    expect(await left("/")).toEqual([200, 8, 8]);
    expect(await left("/own")).toEqual([200, 8, 5]);
    expect(await left("/own")).toEqual([200, 8, 2]);
    expect(await left("/health")).toEqual([200, 8, 2]);
    expect(await left("/child")).toEqual([200, 7, 1]);
    expect(await left("/none")).toEqual([404, 7, 1]);
    expect((await app.inject("/wrong")).body).toContain('did you mean \\"search\\"?');
  });

  test("the plugin loads where a constraint of the application's own has values that JSON cannot", async () => {
    const shop = { name: "shop", validate: () => true, storage: () => new Map(), deriveConstraint: () => 1n };
    const routerOptions = { constraints: { shop: shop as never } };
    const app = fastify(version === "4" ? routerOptions : { routerOptions });
    void app.register(rateLimitPlugin, { limiter: define(), name: "api", key: "k" });
    app.get("/", { constraints: { shop: 1n } }, () => "hello");
    expect([(await app.inject("/")).statusCode, (await app.inject("/")).statusCode]).toEqual([200, 429]);
  });

  test("a response of app.inject has ended, and is not aborted", async () => {
    const ends: unknown[] = [];
    const app = fastify();
    const settle: FastifyOptions<"api">["settle"] = ({ status, aborted }) => void ends.push([status, aborted]);
    app.addHook("onRequest", rateLimit(define(), { name: "api", settle }));
    app.get("/", () => "hello");
    await app.inject("/");
    expect(ends).toEqual([[200, false]]);
  });

  test("over HTTP/2 a response that its client reset is aborted, and one that ended is not", async () => {
    const ends: boolean[] = [];
    const app = fastify({ http2: true });
    const settle: FastifyOptions<"api">["settle"] = ({ aborted }) => void ends.push(aborted);
    app.addHook("onRequest", rateLimit(define(), { name: "api", key: (request) => request.url, settle }));
    app.get("/ends", () => "hello");
    app.get("/hangs", (_, reply) => {
      reply.hijack();
      reply.raw.write("part");
    });
    const session = connect(await app.listen({ host: "127.0.0.1", port: 0 }));
    const ended = session.request({ ":path": "/ends" }).resume();
    await once(ended, "close");
    await eventually(() => expect(ends).toEqual([false]));
    const reset = session.request({ ":path": "/hangs" });
    await once(reset, "data");
    reset.close(constants.NGHTTP2_CANCEL);
    await eventually(() => expect(ends).toEqual([false, true]));
    session.destroy();
    await app.close();
  });

  test.each(["awaited", "not awaited"])(
    "the plugin limits in preHandler, where earlier hooks found the user, and with global: false only routes that set a limit: %s",
    async (how) => {
      const app = fastify();
      app.decorateRequest("user", "");
      app.addHook("preValidation", async (request) => {
        (request as { user?: string }).user = String(request.headers["x-user"]);
      });
      const key = (request: FastifyRequest) => (request as { user?: string }).user ?? "";
      const options = { limiter: define(), name: "api", key, hook: "preHandler", global: false } as const;
      const registered = app.register(rateLimitPlugin, options);
      if (how === "awaited") await registered;
      app.get("/", { config: { rateLimit: {} } }, () => "hello");
      app.get("/free", () => "hello");
      const status = async (url: string, user: string) =>
        (await app.inject({ url, headers: { "x-user": user } })).statusCode;
      expect([await status("/", "a"), await status("/", "b"), await status("/", "a")]).toEqual([200, 200, 429]);
      expect([await status("/free", "a"), await status("/free", "a")]).toEqual([200, 200]);
    },
  );

  test("a wrong option of a route fails when the route is added", async () => {
    const app = fastify();
    await app.register(rateLimitPlugin, { limiter: define(), name: "api" });
    expect(() => app.get("/", { config: { rateLimit: { name: "seach" } } }, () => "")).toThrow(
      'did you mean "search"?',
    );
    expect(() => app.get("/b", { config: { rateLimit: { max: 3 } as never } }, () => "")).toThrow(
      "`max` must be absent: use the limit's `rate` in defineLimits",
    );
    for (const rateLimit of [true, null, "search"]) {
      expect(() => app.get("/c", { config: { rateLimit: rateLimit as never } }, () => "")).toThrow(
        "`config.rateLimit` must be an object of options, or false",
      );
    }
  });

  test("a store that fails writes one line with its cause to Fastify's own log", async () => {
    const lines: string[] = [];
    const app = fastify({ logger: { level: "warn", stream: { write: (line: string) => void lines.push(line) } } });
    const store = behind(() => Promise.reject(new Error('relation "tidegate.state" does not exist')), "postgres");
    const limits = defineLimits({ api: config }, { store, log: app.log });
    app.addHook("onRequest", rateLimit(limits, { name: "api" }));
    app.get("/", () => "hello");
    expect([(await app.inject("/")).statusCode, (await app.inject("/")).statusCode]).toEqual([503, 503]);
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      expect.stringMatching(
        /^tidegate: postgres: .*relation "tidegate.state" does not exist; until postgres answers again/,
      ),
    ]);
  });

  test("with trustProxy the client is request.ip, and without it a warning names the setting", async () => {
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    const statuses = async (trustProxy: string | false) => {
      const app = fastify({ trustProxy });
      app.addHook("onRequest", rateLimit(define(), { name: "api" }));
      app.get("/", () => "hello");
      const from = async (address: string) =>
        (await app.inject({ url: "/", headers: { "x-forwarded-for": address } })).statusCode;
      const found = [await from("192.0.2.1"), await from("192.0.2.2"), await from("6.6.6.6, 192.0.2.1")];
      return found;
    };
    expect(await statuses("loopback")).toEqual([200, 200, 429]);
    expect(warned).not.toHaveBeenCalled();
    expect(await statuses(false)).toEqual([200, 429, 429]);
    expect(warned.mock.calls.map(String)).toEqual([expect.stringContaining("Fastify({ trustProxy: ")]);
  });

  test("warns of no X-Forwarded-For that begins with the peer's address, as on AWS Lambda", async () => {
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    const app = fastify();
    app.addHook("onRequest", rateLimit(define(), { name: "api" }));
    app.get("/", () => "hello");
    // As @fastify/aws-lambda calls it: the peer is the event's `sourceIp`.
    const from = async (remoteAddress: string, forwarded: string) =>
      (await app.inject({ url: "/", remoteAddress, headers: { "x-forwarded-for": forwarded } })).statusCode;
    expect([await from("192.0.2.1", "192.0.2.1, 10.0.0.1"), await from("192.0.2.1", "192.0.2.1")]).toEqual([200, 429]);
    expect(warned).not.toHaveBeenCalled();
    // Another address that begins alike.
    await from("192.0.2.1", "192.0.2.12");
    expect(warned).toHaveBeenCalledOnce();
  });

  test("warns of an X-Forwarded-For that has the peer's address behind another", async () => {
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    const app = fastify();
    app.addHook("onRequest", rateLimit(define(), { name: "api" }));
    app.get("/", () => "hello");
    const from = (remoteAddress: string, forwarded: string) =>
      app.inject({ url: "/", remoteAddress, headers: { "x-forwarded-for": forwarded } });
    // Two proxies of one machine: the first is in the header, and the peer of the second is the same.
    await from("127.0.0.1", "192.0.2.1, 127.0.0.1");
    expect(warned).toHaveBeenCalledOnce();
  });

  test("a route that chooses its limit does not get the plugin's key and count; it shares the other settings", async () => {
    const app = fastify();
    const limiter = defineLimits({ api: { ...config, rate: 9 }, search: { ...config, rate: 9 } });
    await app.register(rateLimitPlugin, { limiter, name: "api", key: "everyone", count: 5, headers: false });
    app.get("/", { config: { rateLimit: { name: "search" } } }, () => "found");
    const { headers } = await app.inject("/");
    expect(headers["ratelimit"]).toBeUndefined();
    expect(Math.floor(limiter.getValue("search", { key: "127.0.0.1" }).value)).toBe(8);
  });

  test("a denied function that sends the reply itself is not answered again", async () => {
    const lines: string[] = [];
    const app = fastify({ logger: { level: "warn", stream: { write: (line: string) => void lines.push(line) } } });
    const denied: FastifyOptions<"api">["denied"] = async (_, reply) => {
      await reply.send("slow down");
    };
    app.addHook("onRequest", rateLimit(define(), { name: "api", denied }));
    app.get("/", () => "hello");
    await app.inject("/");
    const { statusCode, body } = await app.inject("/");
    expect([statusCode, body, lines]).toEqual([429, "slow down", []]);
  });

  test("a wrong option of the plugin rejects its registration, and crashes nothing", async () => {
    for (const [options, message] of [
      [{}, "`limiter` must be what defineLimits returns"],
      [
        { limiter: define(), name: "api", hook: "onSend" },
        "`hook` must be one of onRequest, preValidation, preHandler",
      ],
    ] as const) {
      const app = fastify();
      await expect(app.register(rateLimitPlugin, options as never)).rejects.toThrow(message);
    }
  });

  test("registering the hook as a plugin fails with an error that names the remedy", async () => {
    const app = fastify();
    const plugin = rateLimit(define(), { name: "api" }) as unknown as Parameters<typeof app.register>[0];
    await expect(app.register(plugin)).rejects.toThrow(
      "`hook` must be added with `app.addHook`: `app.register` takes rateLimitPlugin; got undefined",
    );
  });

  test("`register` of the hook's function, which calls it with the instance, fails with an error that names the remedy", () => {
    expect(() => rateLimit(fastify() as never, { name: "api" })).toThrow(
      "`limiter` must be what defineLimits returns; got a Fastify instance: `app.register` takes rateLimitPlugin",
    );
  });

  test("a request that is denied after its response began runs no handler, and ends", async () => {
    const reported: unknown[] = [];
    const app = fastify({ forceCloseConnections: true });
    app.addHook("onRequest", async (_, reply) => void reply.raw.write("early, "));
    app.addHook(
      "onRequest",
      rateLimit(define(), { name: "api", key: "k", onError: (error) => void reported.push(error) }),
    );
    app.get("/", (_, reply) => {
      reply.hijack();
      reply.raw.end("late");
    });
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    const texts = [];
    for (let i = 0; i < 2; i++) texts.push(await (await fetch(url)).text());
    expect(texts).toEqual(["early, late", "early, "]);
    expect(String(reported)).toContain("limit api denied a request whose response had already begun");
    await app.close();
  });
});
