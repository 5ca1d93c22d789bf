import { createAdaptorServer } from "@hono/node-server";
import type { Server } from "node:net";
import { HTTPError } from "h3";
import { createError } from "h3v1";
import { describe, expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { decisionOf, type FetchOptions, rateLimit } from "../../src/middleware/fetch.ts";
import { rateLimit as rateLimitNext } from "../../src/middleware/next.ts";
import { there } from "../realm.ts";
import { eventually } from "./eventually.ts";
import { listen, orders } from "./handler.ts";
import { optionsFor } from "./options-for.ts";
import { middlewareSuite, type Serve } from "./suite.ts";

type Handler = (request: Request, host: unknown) => Promise<Response>;
type Limit = (limiter: Parameters<Serve>[0], options: FetchOptions<Request, string>, handler: Handler) => Handler;
const serve =
  (limit: Limit): Serve =>
  async (limiter, options) => {
    let handler = async (request: Request, _host: unknown): Promise<Response> => {
      const { status, hangs } = orders(request.url);
      if (hangs) await new Promise(() => {});
      return new Response(JSON.stringify(decisionOf(request) ?? null), { status });
    };
    for (const option of [...options].reverse()) {
      const given = optionsFor(
        option,
        (request: Request, name) => request.headers.get(name) ?? undefined,
        ({ status, text }) => new Response(text, { status }),
      );
      handler = limit(limiter, given as FetchOptions<Request, string>, handler);
    }
    const answered = (request: Request, host: unknown) =>
      handler(request, host).catch(() => new Response(null, { status: 500 }));
    return listen(createAdaptorServer({ fetch: answered }) as Server);
  };

middlewareSuite("fetch handlers", serve(rateLimit), { wraps: true });

// The server in front of Next.js sets the header; here the peer's address is passed beside the request.
const next: typeof rateLimitNext = (limiter, options, handler) =>
  rateLimitNext(limiter, { client: { trust: 0 }, ...options }, handler);
middlewareSuite("Next.js handlers", serve(next), { wraps: true, warns: false });

describe("settles once", () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 50, period: MINUTE } });
  const ended = async (signal: AbortSignal, handler: () => Response) => {
    const ends: unknown[] = [];
    const settle: FetchOptions<Request, "api">["settle"] = ({ status, aborted }) => void ends.push([status, aborted]);
    const handle = rateLimitNext(limits, { name: "api", key: "k", settle }, handler);
    await handle(new Request("http://a/", { signal })).catch(() => undefined);
    return ends;
  };
  const hello = () => new Response("hello");

  test("with 499 for a client that left before the decision, although the handler responds", async () => {
    expect(await ended(AbortSignal.abort(), hello)).toEqual([[499, true]]);
  });

  test("with the response's status for a request without a signal, as of Azure Functions", async () => {
    const ends: unknown[] = [];
    const request = { url: "http://a/", method: "GET", headers: new Headers(), params: { name: "ada" } };
    const settle: FetchOptions<typeof request, "api">["settle"] = ({ status, aborted }) => {
      ends.push([status, aborted]);
    };
    const handler = ({ params }: typeof request) => new Response(params.name);
    const response = await rateLimit(limits, { name: "api", key: "k", settle }, handler)(request);
    expect(await response.text()).toBe("ada");
    expect(ends).toEqual([[200, false]]);
  });

  test("with 499 for a client that left while the handler ran, which responds then", async () => {
    const client = new AbortController();
    const answer = () => {
      client.abort();
      return hello();
    };
    expect(await ended(client.signal, answer)).toEqual([[499, true]]);
  });

  test.each([
    ["redirect()", "NEXT_REDIRECT;replace;/login;307;", 303],
    ["notFound()", "NEXT_HTTP_ERROR_FALLBACK;404", 404],
    ["an error with a digest of React's", "2338372187", 500],
  ])("for a handler of Next.js that throws: %s has the status of its response", async (_, digest, status) => {
    const thrown = () => {
      throw Object.assign(new Error(digest), { digest });
    };
    expect(await ended(new AbortController().signal, thrown)).toEqual([[status, false]]);
  });

  test.each([
    ["h3 2", new HTTPError({ status: 404 }), 404],
    ["h3 2, without a status", new HTTPError("broken"), 500],
    ["h3 1", createError({ statusCode: 403 }), 403],
  ])("for a handler that throws an error of %s, which becomes the response", async (_, error, status) => {
    const thrown = () => {
      throw error;
    };
    expect(await ended(new AbortController().signal, thrown)).toEqual([[status, false]]);
  });

  test.each([
    ["a response, as redirect() of React Router and TanStack Start", Response.redirect("http://a/home", 302), 302],
    ["an object with a status, as redirect() of SvelteKit", { status: 303, location: "/home" }, 303],
    ["an object with a response's init, as data() of React Router", { data: "none", init: { status: 404 } }, 404],
    ["the same object without an init", { data: "none", init: null }, 500],
    [
      "an error of another server's client, whose status is not that of the response",
      Object.assign(new Error("not found"), { status: 404 }),
      500,
    ],
    ["the same error, of another realm", there("Object.assign(new Error('not found'), { status: 404 })"), 500],
    ["nothing", undefined, 500],
  ])("for a handler that throws: %s", async (_, value, status) => {
    const thrown = () => {
      throw value;
    };
    expect(await ended(new AbortController().signal, thrown)).toEqual([[status, false]]);
  });
});

test("on @hono/node-server settle waits for the end of a stream, and reports a client that left within it", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } });
  const ends: unknown[] = [];
  const settle: FetchOptions<Request, "api">["settle"] = ({ status, aborted }) => void ends.push([status, aborted]);
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    stream = controller;
  };
  const handler = (_request: Request, _host: unknown) => new Response(new ReadableStream({ start }));
  const fetching = rateLimit(limits, { name: "api", settle }, handler);
  const server = await listen(createAdaptorServer({ fetch: fetching }) as Server);
  const client = new AbortController();
  const begun = async (signal?: AbortSignal) => {
    const answered = fetch(server.url, signal && { signal });
    await eventually(() => expect(stream).toBeDefined());
    stream?.enqueue(new Uint8Array(1));
    const reader = (await answered).body?.getReader();
    await reader?.read();
    return reader;
  };
  const reader = await begun();
  expect(ends).toEqual([]);
  stream?.close();
  expect((await reader?.read())?.done).toBe(true);
  await eventually(() => expect(ends).toEqual([[200, false]]));
  stream = undefined;
  await begun(client.signal);
  client.abort();
  await eventually(() => expect(ends[1]).toEqual([200, true]));
});

test.each([
  ["a request of node:http, as in pages/api of Next.js and in Express", { headers: { host: "a" }, url: "/" }],
  ["the event of SvelteKit, which has the request", { request: new Request("http://a/"), url: new URL("http://a/") }],
  ["nothing", undefined],
])("%s in place of a Request rejects with the remedy, and takes nothing", async (_, given) => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const handler = rateLimit(limits, { name: "api", key: () => "k" }, () => new Response("hello"));
  await expect(handler(given as unknown as Request)).rejects.toThrow(
    "`request` must be a Request: if the host passes an event, pass on its request and the event; for (request, response) use tidegate/node or tidegate/express",
  );
  expect(limits.getValue("api", { key: "k" }).value).toBe(1);
});

describe("a handler without a response", () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const call = (key: string, handler: () => unknown, denied?: () => unknown) =>
    rateLimit(
      limits,
      { name: "api", key, ...(denied && { denied: denied as () => Response }) },
      handler as () => Response,
    )(new Request("http://a/"));

  test.each([[{ hello: 1 }], ["hello"], [null]])(
    "a handler that returns %j rejects, and names what it must return",
    async (value) => {
      await expect(call(JSON.stringify(value), () => value)).rejects.toThrow(
        "`handler` must be a function that returns a Response",
      );
    },
  );

  test("`denied` without a return rejects, and names what it must return", async () => {
    const hello = () => new Response("hello");
    await call("denied", hello);
    const rule = "`denied` must be a function that returns a Response; got undefined";
    await expect(call("denied", hello, () => {})).rejects.toThrow(rule);
  });

  test.each([
    ["are of another realm", there<() => void>("() => { throw new TypeError('immutable'); }")],
    [
      "h3 has frozen, as of a handler that returns an object",
      () => {
        throw new Error("Headers are frozen (set)");
      },
    ],
  ])("a response whose immutable headers %s gets the fields on a copy", async (of, refused) => {
    const headers = Object.assign(new Headers({ "X-Own": "1" }), { set: refused, append: refused });
    const response = { body: "hello", status: 203, statusText: "", headers };
    const answered = await call(of, () => response);
    expect([answered.status, await answered.text(), answered.headers.get("X-Own")]).toEqual([203, "hello", "1"]);
    expect(answered.headers.get("RateLimit")).toMatch(/^"api"/);
  });

  test("a network error, which has no status and takes no fields, is passed on", async () => {
    expect((await call("error", () => Response.error())).type).toBe("error");
  });
});

test("warns of no X-Forwarded-For from which the host has read the client's address, as on Vercel", async () => {
  const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
  const limits = defineLimits({ api: { kind: "token bucket", rate: 9, period: MINUTE } });
  const limited = rateLimit(limits, { name: "api" }, (_request, _event: object) => new Response());
  const headers = { "X-Forwarded-For": "192.0.2.1, 10.0.0.1" };
  const from = (address: string) =>
    limited(new Request("http://app.example/", { headers }), { getClientAddress: () => address });
  await from("192.0.2.1");
  expect(warned).not.toHaveBeenCalled();
  await from("10.0.0.2");
  expect(warned).toHaveBeenCalledOnce();
  warned.mockRestore();
});
