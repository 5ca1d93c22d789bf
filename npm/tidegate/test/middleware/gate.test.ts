import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import express from "express";
import { afterEach, describe, expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { Gate } from "../../src/middleware/gate.ts";
import type { Options } from "../../src/middleware/options.ts";
import { rateLimit } from "../../src/middleware/express.ts";
import { rateLimit as rateLimitFetch } from "../../src/middleware/fetch.ts";
import type { AsyncStore } from "../../src/stores/contract.ts";
import { listen } from "./handler.ts";
import { later } from "./later.ts";

const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } });
type Given = Options<object, "api", () => void>;

function messageOf(made: () => unknown): string {
  try {
    return `made: ${made()}`;
  } catch (error) {
    return (error as Error).message;
  }
}

describe("a mistake in the options throws when the middleware is made", () => {
  test.each<[object, string]>([
    [{}, "`name` must be a limit's name, or a function; got undefined"],
    [{ name: "apl" }, '`name` must be one of the limits defined: "api"; got "apl"; did you mean "api"?'],
    [{ limits: [{ name: "api" }, { name: "day" }] }, '`name` must be one of the limits defined: "api"; got "day"'],
    [{ name: "a b", config: () => undefined }, '`name` must be 1 to 64 characters of A-Z a-z 0-9 _ . -; got "a b"'],
    [{ name: "api", cuont: 3 }, "`cuont` must be absent"],
    [{ limits: [{ name: "api" }], key: "a" }, "`key` must be absent"],
    [{ limits: "api" }, "`limits` must be an array of rules, a function that returns one, or policies"],
    [
      { limits: [{ name: "api", shadow: true }] },
      "`shadow` must be absent: a rule has name, key, count, reserve, config",
    ],
    [{ name: "api", key: 7 }, "`key` must be a string that is not empty, a function of the request, or false; got 7"],
    [{ name: "api", key: "" }, "`key` must be a string that is not empty, a function of the request, or false"],
    [
      { name: "api", count: Number.NaN },
      "`count` must be a number of tokens from 0 to 1099511627776, a function, or { header or query, max }; got NaN",
    ],
    [
      { name: "api", count: -1 },
      "`count` must be a number of tokens from 0 to 1099511627776, a function, or { header or query, max }; got -1",
    ],
    [
      { name: "api", count: { header: "x-count" } },
      "`count.max` must be a number of tokens from 0 to 1099511627776; got undefined",
    ],
    [
      { name: "api", count: { header: "x-count", max: 5, default: 6 } },
      "`count.default` must be a number of tokens from 0 to 5; got 6",
    ],
    [
      { name: "api", count: { header: "x-count", max: 5, min: 2 } },
      "`count.min` must be a number of tokens from 0 to 1; got 2",
    ],
    [
      { name: "api", count: { header: "x-count", max: 5, default: Symbol("one") as never } },
      "`count.default` must be a number of tokens from 0 to 5; got a symbol",
    ],
    [{ name: "api", count: { max: 5 } }, "`count` must be with the name of either a header or a query parameter"],
    [{ name: "api", count: { header: "a", query: "b", max: 5 } }, "`count` must be with the name of either"],
    [{ name: "api", jitter: 2 }, "`jitter` must be a number from 0 to 1, or { fraction, most }; got 2"],
    [{ name: "api", jitter: { most: -1 } }, '`most` must be a number of ms from 0, or a string such as "30s"; got -1'],
    [{ name: "api", statusCode: 200 }, "`statusCode` must be an integer from 400 to 599; got 200"],
    [{ name: "api", never: 429 }, "`never` must be 400, 413 or 422; got 429"],
    [{ name: "api", message: 7 }, "`message` must be a string, an object, or a function that returns one; got 7"],
    [{ name: "api", message: "no", denied: () => {} }, "`message` must be absent with `denied`"],
    [{ name: "api", skipFailedRequests: 1 }, "`skipFailedRequests` must be true or false; got 1"],
    [{ name: "api", skipFailedRequests: true, settle: () => 0 }, "`skipFailedRequests` must be absent with `settle`"],
    [{ name: "api", headers: { fields: "draft-8" } }, 'got "draft-8"; use "draft-11", which has the same fields'],
    [{ name: "api", headers: { fields: "draft-5" } }, "`fields` must be draft-11, draft-7, draft-6, x-ratelimit"],
    [{ name: "api", headers: { feilds: "draft-7" } }, "`feilds` must be absent"],
    [{ name: "api", cost: 3 }, "`cost` must be absent: use `count`; got 3"],
    [{ limits: [{ name: "api", cost: 3 }] }, "`cost` must be absent: use `count`; got 3"],
    [{ windowMs: 1000, max: 5 }, "`windowMs` must be absent: use the limit's `period` in defineLimits; got 1000"],
    [{ max: 5 }, "`max` must be absent: use the limit's `rate` in defineLimits; got 5"],
    [{ burst: 5 }, "`burst` must be absent: use the limit's `capacity` in defineLimits; got 5"],
    [{ name: "api", keyGenerator: () => "k" }, "`keyGenerator` must be absent: use `key`"],
    [{ name: "api", dryRun: true }, "`dryRun` must be absent: use `shadow`"],
    [{ name: "api", handler: () => {} }, "`handler` must be absent: use `denied`"],
    [{ name: "api", headers: true }, "`headers` must be false, or an object with fields; got true"],
    [{ name: "api", skip: true }, "`skip` must be a function; got true"],
    [{ name: "api", client: { trust: -1 } }, "`trust` must be a number of proxies, an integer from 0 to 100"],
    [{ name: "api", client: "x-real-ip" }, '`client` must be an object, such as { trust: 1 }; got "x-real-ip"'],
    [{ name: "api", limits: [{ name: "api" }] }, "`name` must be absent with `limits`, whose rules have it"],
    [{ limits: [{ name: "api" }], count: 2 }, "`count` must be absent with `limits`, whose rules have it; got 2"],
    [{ limits: [] }, "`limits` must be 1 to 100 rules; got 0; use `skip` for requests without a limit"],
    [{ name: "own", config: 5 }, "`config` must be an object with kind, rate and period; got 5"],
    [
      { name: "own", config: { kind: "token bucket", rate: -1, period: 1 } },
      "`rate` must be a finite number of tokens",
    ],
    [
      { limits: [{ name: "own", config: { kind: "leaky bucket" } }] },
      '`kind` must be "token bucket" or "fixed window"',
    ],
  ])("%j", (options, message) => {
    expect(() => new Gate(limits, options as Given)).toThrow(message);
  });

  test("an unknown option throws with the names of all, each of which is a row of the guide", () => {
    const unknown = { name: "api", unknown: 1 } as Given;
    const [, names = ""] = /a middleware has (.*); got 1/.exec(messageOf(() => new Gate(limits, unknown))) ?? [];
    const guide = readFileSync(new URL("../../../site/guide/http.md", import.meta.url), "utf8");
    const rows = [...guide.matchAll(/^\| (`.*?`) \|/gm)].map(([, options]) => options);
    const listed = names.split(", ");
    expect(listed).toContain("onError");
    expect(listed.filter((name) => !rows.some((row) => row?.includes(`\`${name}\``)))).toEqual([]);
  });

  test("a function that returns no rule fails the request, with the remedy", () => {
    const made = new Gate(limits, { limits: () => [] });
    expect(() => made.admit({}, {})).toThrow("`limits` must be 1 to 100 rules; got 0; use `skip`");
  });

  test("a config function that returns none leaves the defined limit; where none is defined, the request fails", () => {
    const config = () => undefined;
    const made = new Gate(limits, { name: "api", key: "own", config });
    expect(made.admit({}, {})).toMatchObject({ decision: { ok: true, limit: 5 } });
    const none = new Gate(limits, { name: "plan", key: "own", config });
    expect(() => none.admit({}, {})).toThrow(
      '`config` must be a limit, from the config function: none is defined as "plan"; got undefined',
    );
  });

  test("a value that is no limiter throws", () => {
    expect(() => new Gate({} as typeof limits, { name: "api" })).toThrow("`limiter` must be what defineLimits returns");
  });
});

test("names are those of defineLimits, and requests are the framework's", () => {
  const app = express();
  app.use(rateLimit(limits, { name: "api", key: (request) => request.get("x-user") ?? "anonymous" }));
  app.use(rateLimit(limits, { name: () => "api" as const, count: 2 }));
  app.use(rateLimit(limits, { name: "any", config: { kind: "fixed window", rate: 5, period: MINUTE } }));
  app.use(rateLimit(limits, { limits: [{ name: "api" }, { name: "api", key: false }] }));
  // @ts-expect-error: a name that was not defined
  expect(() => rateLimit(limits, { name: "apo" })).toThrow('did you mean "api"?');
  // @ts-expect-error: a limit that is not defined needs a config for each request
  app.use(rateLimit(limits, { name: "plan", config: () => undefined }));
  // @ts-expect-error: a key function returns a text
  app.use(rateLimit(limits, { name: "api", key: (request) => request.get("x-user") }));
  // @ts-expect-error: tokens are a number
  expect(() => rateLimit(limits, { name: "api", count: "1" })).toThrow("`count`");
});

test("with a store in memory, nothing waits: the next handler runs within the call", () => {
  const made = new Gate<object>(limits, {
    name: "api",
    key: "k2",
    count: { header: "x-count", max: 9 },
  });
  expect(made.admit({}, { headers: {} })).toMatchObject({ decision: { ok: true, remaining: 4 } });
});

describe("an error of next is not caught, and next is not called again", () => {
  const next = vi.fn(() => {
    throw new Error("in the handler");
  });
  const response = { getHeader: () => undefined, setHeader() {} };
  afterEach(() => void next.mockClear());

  test("a store in memory: it is thrown to the host", () => {
    const middleware = rateLimit(limits, { name: "api", key: "k" });
    expect(() => middleware({ headers: {} } as never, response as never, next)).toThrow("in the handler");
    expect(next).toHaveBeenCalledTimes(1);
  });

  test("an asynchronous store: it is an unhandled rejection", async () => {
    const middleware = rateLimit(
      defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: later() }),
      {
        name: "api",
        key: "k",
      },
    );
    const listeners = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    const unhandled = new Promise((done) => process.once("unhandledRejection", done));
    middleware({ headers: {} } as never, response as never, next);
    expect(await unhandled).toEqual(new Error("in the handler"));
    for (const listener of listeners) process.on("unhandledRejection", listener);
    expect(next).toHaveBeenCalledTimes(1);
  });
});

test("requests of a host that reports no address fail, instead of sharing one bucket", async () => {
  const handler = rateLimitFetch(limits, { name: "api" }, () => new Response("hello"));
  await expect(handler(new Request("http://a/"))).rejects.toThrow(/`key` must be given if the host does not report/);
  const worker = rateLimitFetch(
    limits,
    { name: "api", client: { header: "cf-connecting-ip" } },
    () => new Response("hello"),
  );
  expect((await worker(new Request("http://a/", { headers: { "cf-connecting-ip": "192.0.2.9" } }))).status).toBe(200);
});

test("Deno's and Bun's hosts report the address, each in its way", async () => {
  const one = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const handler = rateLimitFetch(one, { name: "api" }, (_request: Request, _host: unknown) => new Response("hello"));
  const status = async (host: unknown) => (await handler(new Request("http://a/"), host)).status;
  expect(await status({ remoteAddr: { hostname: "192.0.2.1", port: 1, transport: "tcp" } })).toBe(200);
  expect(await status({ requestIP: () => ({ address: "::ffff:192.0.2.1", family: "IPv6", port: 1 }) })).toBe(429);
  expect(await status({ requestIP: () => ({ address: "192.0.2.2", family: "IPv4", port: 1 }) })).toBe(200);
});

test("Netlify passes a context that has the address; the parameters of a route may have one that the client chose", async () => {
  const one = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const handler = rateLimitFetch(one, { name: "api" }, (_request: Request, _context: unknown) => new Response("hello"));
  const status = async (context: unknown) => (await handler(new Request("http://a/"), context)).status;
  const geo = { city: "Oslo" };
  expect(await status({ ip: "192.0.2.1", geo })).toBe(200);
  expect(await status({ ip: "192.0.2.1", geo })).toBe(429);
  expect(await status({ ip: "192.0.2.2", geo })).toBe(200);
  await expect(status({ ip: "192.0.2.3" })).rejects.toThrow("`key` must be given");
  await expect(status({ ip: "192.0.2.3", geo: "Oslo" })).rejects.toThrow("`key` must be given");
});

test("SvelteKit, Astro, Qwik and h3 pass an object that has the address", async () => {
  const one = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const handler = rateLimitFetch(one, { name: "api" }, (_request: Request, _event: unknown) => new Response("hello"));
  const status = async (event: unknown) => (await handler(new Request("http://a/"), event)).status;
  expect(await status({ getClientAddress: () => "192.0.2.1" })).toBe(200); // SvelteKit
  expect(await status({ clientAddress: "192.0.2.1" })).toBe(429); // Astro
  expect(await status({ clientConn: { ip: "192.0.2.1" } })).toBe(429); // Qwik City
  expect(await status({ req: { ip: "192.0.2.1" } })).toBe(429); // h3 2
  expect(await status({ req: { ip: "192.0.2.2" } })).toBe(200);
  expect(await status({ node: { req: { socket: { remoteAddress: "192.0.2.2" } } } })).toBe(429); // h3 1: Nuxt 4
  expect(await status({ node: { req: { socket: { remoteAddress: "192.0.2.3" } } } })).toBe(200);
});

test("@whatwg-node/server, on which GraphQL Yoga runs, passes an object that has the request of node:http", async () => {
  const one = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const handler = rateLimitFetch(one, { name: "api" }, (_request: Request, _context: unknown) => new Response("hello"));
  const status = async (remoteAddress: string) =>
    (await handler(new Request("http://a/"), { req: { socket: { remoteAddress } }, res: {} })).status;
  expect([await status("192.0.2.1"), await status("192.0.2.1"), await status("192.0.2.2")]).toEqual([200, 429, 200]);
});

test("srvx, on which TanStack Start and Nitro 3 run, reports the address in the request", async () => {
  const one = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const handler = rateLimitFetch(
    one,
    { name: "api" },
    (_request: Request, ..._beside: unknown[]) => new Response("hello"),
  );
  const request = (ip: string) => Object.assign(new Request("http://a/"), { ip });
  expect((await handler(request("192.0.2.1"))).status).toBe(200);
  expect((await handler(request("192.0.2.1"), { params: { id: "7" } })).status).toBe(429); // a route's parameters
  expect((await handler(request("192.0.2.1"), async () => new Response("next"))).status).toBe(429); // a middleware's next
  expect((await handler(request("192.0.2.2"))).status).toBe(200);
});

test("an adapter without addresses fails a request only where no key is given", async () => {
  const sveltekit = {
    getClientAddress: (): string => {
      throw new Error("this adapter has no getClientAddress");
    },
  };
  const astro = {
    get clientAddress(): string {
      throw new Error("this adapter has no clientAddress");
    },
  };
  const answer = (_request: Request, _event: unknown) => new Response("hello");
  const keyed = rateLimitFetch(limits, { name: "api", key: "adapter" }, answer);
  const addressed = rateLimitFetch(limits, { name: "api" }, answer);
  for (const event of [sveltekit, astro]) {
    expect((await keyed(new Request("http://a/"), event)).status).toBe(200);
    await expect(addressed(new Request("http://a/"), event)).rejects.toThrow("this adapter has no");
  }
});

test("a response that came from fetch, whose headers cannot be written, gets the fields too", async () => {
  const origin = await listen(createServer((_, response) => response.end("from afar")));
  const proxy = rateLimitFetch(limits, { name: "api", key: "proxied" }, () => fetch(origin.url));
  const response = await proxy(new Request("http://a/"));
  expect(response.headers.get("ratelimit")).toMatch(/^"api";r=4;/);
  expect(await response.text()).toBe("from afar");
});

test("Workers wait for the settlement", async () => {
  const kept: Promise<unknown>[] = [];
  const fresh = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } });
  const handler = rateLimitFetch(
    fresh,
    { name: "api", key: "k", settle: () => 3 },
    (_request: Request, _env: unknown, _context: unknown) => new Response(),
  );
  await handler(new Request("http://a/"), {}, { waitUntil: (work: Promise<unknown>) => void kept.push(work) });
  expect(kept.length).toBe(1);
  await kept[0];
  expect(Math.floor(fresh.getValue("api", { key: "k" }).value)).toBe(2);
});

test("a wrong number from a count function is an error, and takes nothing", async () => {
  const now = () => 1_735_689_600_000;
  const fresh = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } }, { now });
  const wrong = [
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e308,
    2 ** 53 + 1,
    "1",
    1n,
    null,
    undefined,
    { valueOf: () => 1 },
  ];
  for (const count of wrong) {
    const made = new Gate(fresh, { name: "api", key: "k", count: () => count as number });
    expect(() => made.admit({}, {}), String(count)).toThrow("`count` must be a finite number of tokens");
    const waiting = new Gate(fresh, { name: "api", key: "k", count: async () => count as number });
    await expect(waiting.admit({}, {}), String(count)).rejects.toThrow("`count` must be a finite number of tokens");
  }
  expect(fresh.getValue("api", { key: "k" }).value).toBe(5);
});

test("a degraded decision gives nothing back to the store", async () => {
  let down = true;
  const inner = later();
  const given: string[] = [];
  const store = {
    ...inner,
    decide: async (...call: Parameters<AsyncStore["decide"]>) => {
      if (down) throw new Error("gone");
      given.push(call[0].op);
      return inner.decide(...call);
    },
  };
  const allowing = defineLimits(
    { api: { kind: "token bucket", rate: 5, period: MINUTE } },
    { store, onStoreError: "allow" },
  );
  const made = new Gate(allowing, { name: "api", key: "k", settle: () => 0 });
  const admission = await made.admit({}, {});
  down = false;
  await admission?.settle({ status: 500, aborted: false });
  expect([admission?.decision.degraded, given]).toEqual([true, []]);
  await (await made.admit({}, {}))?.settle({ status: 500, aborted: false });
  expect(given).toEqual(["take", "give"]);
});

test("several limits are settled by name, or all alike; a debt beyond the capacity included", async () => {
  const now = () => 1_735_689_600_000;
  const two = defineLimits(
    {
      requests: { kind: "token bucket", rate: 5, period: MINUTE },
      tokens: { kind: "token bucket", rate: 100, period: MINUTE },
    },
    { now },
  );
  const limits = [
    { name: "requests" as const, key: "k" },
    { name: "tokens" as const, key: "k", count: 50 },
  ];
  const left = () => [two.getValue("requests", { key: "k" }).value, two.getValue("tokens", { key: "k" }).value];
  const end = { status: 200, aborted: false };
  await (await new Gate(two, { limits, settle: () => ({ tokens: 120 }) }).admit({}, {}))?.settle(end);
  expect(left()).toEqual([4, -20]);
  two.reset("tokens", { key: "k" });
  await (await new Gate(two, { limits, settle: () => 0 }).admit({}, {}))?.settle(end);
  expect(left()).toEqual([4, 100]);
  const chosen = new Gate(two, { limits: () => limits, settle: () => ({ tokens: 50, maybe: 1 }) });
  await (await chosen.admit({}, {}))?.settle(end);
  expect(left()).toEqual([3, 50]);
});

test.each<[string, { name: "api"; key: string } | { limits: { name: "api"; key: string }[] }]>([
  ["one limit", { name: "api", key: "misspelt" }],
  ["several limits", { limits: [{ name: "api", key: "misspelt" }] }],
])("with %s, a settlement of a name that no limit has is reported, and changes nothing", async (_, rules) => {
  const errors: unknown[] = [];
  const made = new Gate(limits, { ...rules, settle: () => ({ apis: 0 }), onError: (error) => errors.push(error) });
  await (await made.admit({}, {}))?.settle({ status: 200, aborted: false });
  expect(errors).toEqual([expect.objectContaining({ message: expect.stringMatching(/^`settle` must be .*"apis"/) })]);
});

test("a limiter of the application's own, or of its tests, needs no names", async () => {
  const limit = vi.fn(() => limits.limit("api", { key: "own" }));
  const own = { limit } as unknown as typeof limits;
  const made = new Gate(own, { name: "api", key: "own" });
  expect((await made.admit({}, {}))?.decision.ok).toBe(true);
  expect(limit).toHaveBeenCalledWith("api", { key: "own", count: 1 });
});
