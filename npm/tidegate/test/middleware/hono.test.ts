import { createAdaptorServer } from "@hono/node-server";
import { createAdaptorServer as createAdaptorServer1 } from "@hono/node-server1";
import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { stream } from "hono/streaming";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { Server } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type HonoOptions, rateLimit } from "../../src/middleware/hono.ts";
import { eventually } from "./eventually.ts";
import { listen, orders } from "./handler.ts";
import { optionsFor } from "./options-for.ts";
import { middlewareSuite } from "./suite.ts";

test("in app.request the environment has the client's address, and without it the error names `key`", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const app = new Hono();
  app.use(rateLimit(limits, { name: "api" }));
  app.get("/", (context) => context.text("hello"));
  app.onError((error, context) => context.text(error.message, 500));
  expect(await (await app.request("/")).text()).toMatch(
    /^`key` must be given if the host does not report the client's/,
  );
  const from = async (remoteAddress: string) =>
    (await app.request("/", {}, { incoming: { socket: { remoteAddress } } })).status;
  expect([await from("192.0.2.1"), await from("192.0.2.1"), await from("192.0.2.2")]).toEqual([200, 429, 200]);
});

test("where a header states the address, and a request without it has none, the error names the header", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  for (const [client, header] of [
    [{ header: "cf-connecting-ip" }, "cf-connecting-ip"],
    [{ trust: 1 }, "x-forwarded-for"],
  ] as const) {
    const app = new Hono();
    app.use(rateLimit(limits, { name: "api", client }));
    app.get("/", (context) => context.text("hello"));
    app.onError((error, context) => context.text(error.message, 500));
    expect(await (await app.request("/")).text()).toBe(
      `\`key\` must be given if the host does not report the client's address, nor the request's ${header}: send it in tests, or give a \`key\`; got undefined`,
    );
    expect((await app.request("/", { headers: { [header]: `192.0.2.${header.length}` } })).status).toBe(200);
  }
});

const ADAPTERS = { "2": createAdaptorServer, "1": createAdaptorServer1 as unknown as typeof createAdaptorServer };

for (const [version, adapt] of Object.entries(ADAPTERS)) {
  middlewareSuite(`Hono on @hono/node-server ${version}`, async (limiter, options) => {
    const app = new Hono();
    for (const option of options) {
      const given = optionsFor(
        option,
        (context: Context, name) => context.req.header(name),
        ({ status, text }) => new Response(text, { status }),
      );
      const limit = rateLimit(limiter, given as HonoOptions<string>);
      app.use(limit);
      if (option.twice === true) app.use(limit);
    }
    app.get("/", async (context) => {
      const { status, hangs } = orders(context.req.url);
      if (hangs) await new Promise(() => {});
      return new Response(JSON.stringify(context.get("rateLimit") ?? null), { status });
    });
    app.onError(() => new Response("it failed", { status: 500 }));
    return listen(adapt({ fetch: app.fetch }) as Server);
  });

  test(`a denied HEAD request has the fields of a denied GET on @hono/node-server ${version}`, async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } }, { now: () => 0 });
    limits.limit("api", { key: "k" });
    const app = new Hono();
    app.use(rateLimit(limits, { name: "api", key: "k", jitter: 0 }));
    const server = await listen(adapt({ fetch: app.fetch }) as Server);
    const { status, headers } = await fetch(server.url, { method: "HEAD" });
    const fields = ["RateLimit", "Retry-After", "Content-Type"].map((name) => headers.get(name));
    expect([status, ...fields]).toEqual([429, '"api";r=0;t=60', "60", "application/problem+json"]);
  });

  test(`a client that left before its limit is no error on @hono/node-server ${version}`, async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } }, { now: () => 0 });
    const errors: unknown[] = [];
    const app = new Hono();
    const handled = new Promise<void>((done) => {
      app.use(async (context, next) => {
        const { socket } = (context.env as { incoming: IncomingMessage }).incoming;
        const closed = once(socket, "close");
        socket.destroy();
        await closed;
        await next();
        done();
      });
    });
    app.use(rateLimit(limits, { name: "api" }));
    app.get("/", (context) => context.text("hello"));
    app.onError((error, context) => {
      errors.push(error);
      return context.text("it failed", 500);
    });
    const server = await listen(adapt({ fetch: app.fetch }) as Server);
    await expect(fetch(server.url)).rejects.toThrow();
    await handled;
    expect(errors).toEqual([]);
  });

  test(`settle waits for the end of a stream, and reports a client that left within it, on @hono/node-server ${version}`, async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } });
    const ends: unknown[] = [];
    let used = 0;
    const app = new Hono();
    const settle: HonoOptions<"api">["settle"] = ({ status, aborted }) => void ends.push([status, aborted, used]);
    app.use(rateLimit(limits, { name: "api", settle }));
    app.get("/", (context) =>
      stream(context, async (body) => {
        await body.write("hello");
        used++;
        if (context.req.query("hang") !== undefined) await new Promise<void>((left) => body.onAbort(left));
      }),
    );
    const server = await listen(adapt({ fetch: app.fetch }) as Server);
    expect(await (await fetch(server.url)).text()).toBe("hello");
    await eventually(() => expect(ends).toEqual([[200, false, 1]]));
    const client = new AbortController();
    const { body } = await fetch(`${server.url}?hang`, { signal: client.signal });
    await body?.getReader().read();
    expect(ends.length).toBe(1);
    client.abort();
    await eventually(() => expect(ends[1]).toEqual([200, true, 2]));
  });

  describe(`all fields of nested limiters on @hono/node-server ${version}`, () => {
    const nested = async (handler: (context: Context) => Response | Promise<Response>) => {
      const limits = defineLimits({
        a: { kind: "token bucket", rate: 5, period: MINUTE },
        b: { kind: "token bucket", rate: 9, period: MINUTE },
      });
      const app = new Hono();
      app.use(rateLimit(limits, { name: "a" }));
      app.use(rateLimit(limits, { name: "b" }));
      app.get("/", handler);
      const server = await listen(adapt({ fetch: app.fetch }) as Server);
      const { status, headers } = await fetch(server.url);
      const names = headers.get("ratelimit")?.match(/"\w"/g)?.sort();
      return [status, names, headers.get("x-own")];
    };

    test("are on a response from fetch, whose headers are immutable", async () => {
      const origin = await listen(createServer((_, response) => void response.setHeader("x-own", "1").end("remote")));
      expect(await nested(() => fetch(origin.url))).toEqual([200, ['"a"', '"b"'], "1"]);
    });

    test("are on a response from fetch, beside the limits that it has", async () => {
      const fields = { "x-own": "1", ratelimit: '"o";r=1;t=9' };
      const origin = await listen(createServer((_, response) => void response.writeHead(200, fields).end("remote")));
      expect(await nested(() => fetch(origin.url))).toEqual([200, ['"a"', '"b"', '"o"'], "1"]);
    });

    test("are on a Response that the handler makes", async () => {
      const own = () => new Response("hello", { headers: { "x-own": "1" } });
      expect(await nested(own)).toEqual([200, ['"a"', '"b"'], "1"]);
    });

    test("are on the response of an HTTPException that the handler throws", async () => {
      const response = new Response("no", { status: 403, headers: { "x-own": "1" } });
      const thrown = () => {
        throw new HTTPException(403, { res: response });
      };
      expect(await nested(thrown)).toEqual([403, ['"a"', '"b"'], "1"]);
      expect(
        await nested(() => {
          throw new HTTPException(404, { message: "no" });
        }),
      ).toEqual([404, ['"a"', '"b"'], null]);
    });
  });
}

test("settle gets the error that a handler threw, and Workers wait for the settlement", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } });
  const failure = new Error("the handler fails");
  const ends: unknown[] = [];
  const app = new Hono();
  const settle: HonoOptions<"api">["settle"] = async ({ status, error }) => {
    await Promise.resolve();
    ends.push([status, error]);
  };
  app.use(rateLimit(limits, { name: "api", key: "k", settle }));
  app.onError((_, context) => context.text("it failed", 500));
  app.get("/", () => {
    throw failure;
  });
  const kept: Promise<unknown>[] = [];
  const worker = {
    waitUntil: (work: Promise<unknown>) => void kept.push(work),
    passThroughOnException() {},
    props: {},
  };
  await app.request("/", {}, {}, worker);
  await Promise.all(kept);
  expect([kept.length, ends]).toEqual([1, [[500, failure]]]);
});

test("settle gets what a handler threw that is no Error, which Hono passes to no error handler", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } });
  const ends: unknown[] = [];
  const settle: HonoOptions<"api">["settle"] = ({ status, error }) => {
    ends.push([status, error]);
    return 0;
  };
  const app = new Hono();
  app.use(rateLimit(limits, { name: "api", key: "k", settle }));
  app.onError((_, context) => context.text("it failed", 500));
  app.get("/", () => {
    throw "a text";
  });
  await expect(app.request("/")).rejects.toBe("a text");
  await vi.waitFor(() => expect(limits.getValue("api", { key: "k" }).value).toBe(5));
  expect(ends).toEqual([[500, "a text"]]);
});

test.each<[string, object]>([
  ["Express", { headers: {}, socket: {}, res: {} }],
  ["Koa", { req: { headers: {}, socket: {} }, res: {} }],
])("in %s the error names the import that another framework needs", async (_, given) => {
  const next = vi.fn();
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const call = rateLimit(limits, { name: "api" })(given as Context, next);
  await expect(call).rejects.toThrow("`context` must be Hono's: import the rateLimit of your framework, such as");
  expect(next).not.toHaveBeenCalled();
});
