/** The guard outside of HTTP: resolvers of @nestjs/graphql on Apollo, gateways of @nestjs/websockets on ws and socket.io. */
import "reflect-metadata";
import { on, once } from "node:events";
import type { ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { ApolloDriver, type ApolloDriverConfig } from "@nestjs/apollo";
import { Controller, Get, type INestApplication, Logger, Module, Req, UseGuards } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Args, GraphQLModule, GraphQLSchemaHost, Int, Mutation, Query, Resolver, Subscription } from "@nestjs/graphql";
import { IoAdapter } from "@nestjs/platform-socket.io";
import { WsAdapter } from "@nestjs/platform-ws";
import { MessageBody, SubscribeMessage, WebSocketGateway } from "@nestjs/websockets";
import { io } from "socket.io-client";
import { afterEach, describe, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { defineLimits, MINUTE } from "../../src/index.ts";
import type { AsyncStore } from "../../src/stores/contract.ts";
import { later } from "./later.ts";
import {
  type NestOptions,
  type RequestDecision,
  RateLimitDecision,
  RateLimitGuard,
  rateLimitGuard,
  RateLimitModule,
} from "../../src/middleware/nest.ts";

// Nest's own copy: an import of the ES module is a second one.
const { graphql: execute } = createRequire(import.meta.url)("graphql") as typeof import("graphql");

const open: INestApplication[] = [];
afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
});

const define = () => defineLimits({ api: { kind: "token bucket", rate: 2, period: MINUTE } });
type Guard = ReturnType<typeof rateLimitGuard>;

/** Applies decorators to a method: what compiles these tests does not know their syntax. */
const decorate = (prototype: object, name: string, ...decorators: MethodDecorator[]): void => {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor;
  for (const decorator of decorators) decorator(prototype, name, descriptor);
};

async function listening(
  parts: { providers?: unknown[]; controllers?: unknown[]; imports?: unknown[] },
  adapt?: (app: INestApplication) => void,
) {
  class App {}
  Module(parts as never)(App);
  const app = await NestFactory.create(App, { logger: false });
  open.push(app);
  adapt?.(app);
  await app.listen(0, "127.0.0.1");
  return (await app.getUrl()).replace("[::1]", "127.0.0.1");
}

/** A message of the protocol graphql-transport-ws. */
interface Received {
  readonly type: string;
  readonly payload?: { readonly data?: unknown; readonly errors?: readonly { readonly extensions?: object }[] };
}

describe("GraphQL on Apollo", () => {
  async function serving(guard: Guard): Promise<string> {
    class Notes {
      notes(): string[] {
        return ["first"];
      }
      left(decision: RequestDecision | undefined): number {
        return decision?.remaining ?? -1;
      }
      add(text: string): string {
        return text;
      }
      async *added(): AsyncGenerator<unknown> {
        yield { added: "second" };
      }
    }
    decorate(
      Notes.prototype,
      "notes",
      Query(() => [String]),
      UseGuards(guard) as MethodDecorator,
    );
    RateLimitDecision()(Notes.prototype, "left", 0);
    decorate(
      Notes.prototype,
      "left",
      Query(() => Int),
      UseGuards(guard) as MethodDecorator,
    );
    // What TypeScript would emit for the decorators.
    Reflect.defineMetadata("design:paramtypes", [String], Notes.prototype, "add");
    Args("text", { type: () => String })(Notes.prototype, "add", 0);
    decorate(
      Notes.prototype,
      "add",
      Mutation(() => String),
      UseGuards(guard) as MethodDecorator,
    );
    decorate(
      Notes.prototype,
      "added",
      Subscription(() => String),
      UseGuards(guard) as MethodDecorator,
    );
    Resolver()(Notes);
    const settings: ApolloDriverConfig = {
      driver: ApolloDriver,
      autoSchemaFile: true,
      subscriptions: { "graphql-ws": true },
      context: ({ req, res }: { req: unknown; res: unknown }) => ({ req, res }),
    };
    return `${await listening({ imports: [GraphQLModule.forRoot(settings)], providers: [Notes] })}/graphql`;
  }

  async function graphql(guard: Guard) {
    const url = await serving(guard);
    return async (query: string) => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ query }) });
      const { data, errors } = (await response.json()) as {
        data: unknown;
        errors?: { message: string; extensions: object }[];
      };
      return { data, errors, headers: response.headers };
    };
  }

  test("grants with fields on the response, then denies with an error that has the problem and its code", async () => {
    const send = await graphql(rateLimitGuard(define(), { name: "api", jitter: 0 }));
    const first = await send("{ notes }");
    expect([first.data, first.errors, first.headers.get("ratelimit")]).toEqual([
      { notes: ["first"] },
      undefined,
      expect.stringMatching(/^"api";r=1;t=\d+$/),
    ]);
    await send("{ notes }");
    const { errors, headers } = await send("{ notes }");
    expect(errors?.[0]?.extensions).toMatchObject({
      code: "TOO_MANY_REQUESTS",
      status: 429,
      "violated-policies": ["api"],
    });
    expect(errors?.[0]?.message).toContain("Retry in 30 s.");
    expect(headers.get("retry-after")).toBe("30");
  });

  test("a request that is never granted has the code of a mistake", async () => {
    const send = await graphql(rateLimitGuard(define(), { name: "api", count: 3 }));
    const { errors } = await send("{ notes }");
    expect(errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", status: 400 });
  });

  test("each resolver of a request receives its own decision, although all run at the same time", async () => {
    const send = await graphql(rateLimitGuard(define(), { name: "api" }));
    expect((await send("{ a: left b: left }")).data).toEqual({ a: 1, b: 0 });
  });

  test("each mutation of one document takes a token", async () => {
    const send = await graphql(rateLimitGuard(define(), { name: "api" }));
    const { data, errors } = await send('mutation { a: add(text: "a") b: add(text: "b") c: add(text: "c") }');
    expect([data, errors?.map(({ extensions }) => (extensions as { code: string }).code)]).toEqual([
      null,
      ["TOO_MANY_REQUESTS"],
    ]);
  });

  test("each subscription over graphql-ws takes a token of the socket's client; a denial has its code", async () => {
    const url = await serving(rateLimitGuard(define(), { name: "api" }));
    const socket = new WebSocket(url.replace("http", "ws"), "graphql-transport-ws");
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init" }));
    const payloads = [];
    for await (const [message] of on(socket, "message")) {
      const { type, payload } = JSON.parse(String(message)) as Received;
      if (type === "next") payloads.push(payload?.data ?? payload?.errors?.[0]?.extensions ?? payload);
      if (payloads.length === 3) break;
      const subscribe = { id: "1", type: "subscribe", payload: { query: "subscription { added }" } };
      // After the acknowledgement, and after each subscription's end.
      if (type !== "next") socket.send(JSON.stringify(subscribe));
    }
    socket.terminate();
    expect(payloads).toEqual([
      { added: "second" },
      { added: "second" },
      expect.objectContaining({ code: "TOO_MANY_REQUESTS", status: 429, "violated-policies": ["api"] }),
    ]);
  });

  test("a subscription of Mercurius, whose reply has only the request, is limited and sets no fields", async () => {
    await serving(rateLimitGuard(define(), { name: "api" }));
    const { schema } = (open[0] as INestApplication).get(GraphQLSchemaHost);
    const request = { raw: { headers: {}, socket: { remoteAddress: "192.0.2.1" }, url: "/graphql" } };
    const codes = [];
    for (let i = 0; i < 3; i++) {
      const { errors } = await execute({ schema, source: "{ notes }", contextValue: { reply: { request } } });
      codes.push(errors?.map(({ extensions, message }) => extensions["code"] ?? message));
    }
    expect(codes).toEqual([undefined, undefined, ["TOO_MANY_REQUESTS"]]);
  });

  test("a query outside of a request fails with an error that names the context's setting, and takes nothing", async () => {
    const limits = define();
    await graphql(rateLimitGuard(limits, { name: "api", key: "k" }));
    const { schema } = (open[0] as INestApplication).get(GraphQLSchemaHost);
    const { errors } = await execute({ schema, source: "{ notes }", contextValue: {} });
    expect(errors?.map(({ message }) => message)).toEqual([
      "`context.req` must be the request: GraphQL's `context: ({ req, res }) => ({ req, res })`; got undefined",
    ]);
    expect(limits.check("api", { key: "k" }).remaining).toBe(1);
  });
});

const SOCKETS = {
  async ws(url: string) {
    const socket = new WebSocket(url.replace("http", "ws"));
    await once(socket, "open");
    const send = async (data: string): Promise<unknown> => {
      const answer = once(socket, "message");
      socket.send(JSON.stringify({ event: "note", data }));
      return JSON.parse(String((await answer)[0]));
    };
    return { send, close: () => socket.terminate() };
  },
  async "socket.io"(url: string) {
    const socket = io(url, { transports: ["websocket"] });
    await new Promise<void>((done) => socket.once("connect", done));
    const send = (data: string): Promise<unknown> =>
      new Promise((done) => {
        socket.once("exception", (problem: unknown) => done({ event: "exception", data: problem }));
        socket.emit("note", data, (answer: unknown) => done({ event: "note", data: answer }));
      });
    return { send, close: () => socket.disconnect() };
  },
};

describe.each(Object.entries(SOCKETS))("WebSocket messages on %s", (name, connect) => {
  async function gateway(options: NestOptions<"api">, imports: unknown[] = []) {
    class Notes {
      note(text: string): unknown {
        return name === "ws" ? { event: "note", data: text } : text;
      }
    }
    MessageBody()(Notes.prototype, "note", 0);
    const guard = imports.length === 0 ? rateLimitGuard(define(), options) : RateLimitGuard;
    decorate(Notes.prototype, "note", SubscribeMessage("note"), UseGuards(guard) as MethodDecorator);
    WebSocketGateway()(Notes);
    const url = await listening({ imports, providers: [Notes] }, (app) =>
      app.useWebSocketAdapter(name === "ws" ? new WsAdapter(app) : new IoAdapter(app)),
    );
    return connect(url);
  }

  test("grants by the client's address, then answers with the event exception and the problem", async () => {
    const { send, close } = await gateway({ name: "api", jitter: 0 });
    expect([await send("a"), await send("b")]).toEqual([
      { event: "note", data: "a" },
      { event: "note", data: "b" },
    ]);
    expect(await send("c")).toMatchObject({
      event: "exception",
      data: { status: 429, title: "Quota exceeded", "violated-policies": ["api"] },
    });
    close();
  });

  test("a message takes once where the module is global and RateLimitGuard is on the gateway, too", async () => {
    const { send, close } = await gateway({ name: "api" }, [
      RateLimitModule.forRoot({ limiter: define(), name: "api" }),
    ]);
    expect([await send("a"), await send("b"), await send("c")]).toMatchObject([
      { event: "note" },
      { event: "note" },
      { event: "exception", data: { "violated-policies": ["api"] } },
    ]);
    close();
  });
});

test("a socket of ws behind a proxy, which has no headers, needs a key: without it all clients would share one limit", async () => {
  const client = { _socket: { remoteAddress: "10.0.0.1" } };
  const context = { getType: () => "ws", switchToWs: () => ({ getClient: () => client }) } as never;
  const trusting = { name: "api", client: { trust: 1 } } as const;
  expect(() => rateLimitGuard(define(), trusting).canActivate(context)).toThrow(
    "`key` must be given if there are no headers to read the client's address from, as in a message on ws; got undefined",
  );
  expect(rateLimitGuard(define(), { ...trusting, key: () => "ada" }).canActivate(context)).toBe(true);
  expect(rateLimitGuard(define(), { name: "api", client: { trust: 0 } }).canActivate(context)).toBe(true);
});

test("trust proxy: true of Express, with which clients choose their address, is warned of", () => {
  const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
  const response = { getHeader: () => undefined, setHeader: () => {} };
  const warnings = (trust: unknown): number => {
    const headers = { "x-forwarded-for": "192.0.2.1" };
    const socket = { remoteAddress: "10.0.0.1" };
    const request = { headers, socket, ip: "192.0.2.1", ips: ["192.0.2.1"], app: { get: () => trust } };
    const switchToHttp = () => ({ getRequest: () => request, getResponse: () => response });
    expect(
      rateLimitGuard(define(), { name: "api" }).canActivate({ getType: () => "http", switchToHttp } as never),
    ).toBe(true);
    return warned.mock.calls.length;
  };
  expect([warnings(1), warnings("loopback"), warnings(true)]).toEqual([0, 0, 1]);
  // No proxy is trusted, so it is that of all clients.
  expect([warnings(0), warnings(false)]).toEqual([2, 3]);
});

test("a handler without a request fails with an error that names the remedy", async () => {
  const guard = rateLimitGuard(define(), { name: "api" });
  const context = { getType: () => "rpc" } as never;
  expect(() => guard.canActivate(context)).toThrow(
    "`context` must be one of an HTTP, GraphQL or WebSocket handler: a handler of the type rpc has no request; use @SkipRateLimit()",
  );
});

test("a store that fails writes one line with its cause to Nest's own log, and one when it answers again", async () => {
  const lines: unknown[][] = [];
  const write =
    (level: string) =>
    (message: unknown, ...more: unknown[]) =>
      void (String(message).startsWith("tidegate") && lines.push([level, message, ...more]));
  Logger.overrideLogger({ log: write("log"), error: write("error"), warn: write("warn") });
  let down = true;
  const inner = later();
  const decide: AsyncStore["decide"] = async (...call) =>
    down ? Promise.reject(new Error("gone")) : inner.decide(...call);
  const log = new Logger("RateLimit");
  const limits = defineLimits(
    { api: { kind: "token bucket", rate: 2, period: MINUTE } },
    { store: { ...inner, decide }, log },
  );
  await limits.limit("api");
  await limits.limit("api");
  down = false;
  await limits.limit("api");
  Logger.overrideLogger(false);
  expect(lines).toEqual([
    ["error", expect.stringMatching(/^tidegate: map: .*gone; until map answers again/), new Error("gone"), "RateLimit"],
    ["log", "tidegate: map answers again", "RateLimit"],
  ]);
});

test("a denial of HTTP writes no line to Nest's log", async () => {
  class Root {
    index(): string {
      return "hello";
    }
  }
  Controller()(Root);
  decorate(Root.prototype, "index", Get(), UseGuards(rateLimitGuard(define(), { name: "api" })) as MethodDecorator);
  Req()(Root.prototype, "index", 0);
  const lines: unknown[] = [];
  const log = (line: unknown): void => void lines.push(line);
  const url = await listening({ controllers: [Root] }, (app) =>
    app.useLogger({ log() {}, error: log, warn: log, debug: log, verbose: log }),
  );
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await fetch(url)).status);
  expect([statuses, lines]).toEqual([[200, 200, 429], []]);
});

test("a request that is denied after its response began runs no handler, and ends", async () => {
  let handled = 0;
  class Root {
    index(): string {
      handled++;
      return "late";
    }
  }
  Controller()(Root);
  decorate(Root.prototype, "index", Get(), UseGuards(rateLimitGuard(define(), { name: "api" })) as MethodDecorator);
  const url = await listening({ controllers: [Root] }, (app) =>
    app.use((_: unknown, response: ServerResponse, next: () => void) => {
      response.write("early");
      next();
    }),
  );
  const texts = [];
  for (let i = 0; i < 3; i++) texts.push((await (await fetch(url)).text()).slice(0, 5));
  expect([texts, handled]).toEqual([["early", "early", "early"], 2]);
});
