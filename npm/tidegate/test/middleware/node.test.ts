import { createServer, IncomingMessage, request as send, ServerResponse } from "node:http";
import { connect as connect2, createServer as createServer2 } from "node:http2";
import { type AddressInfo, Socket } from "node:net";
import { once } from "node:events";
import { Writable } from "node:stream";
import connect from "connect";
import { expect, expectTypeOf, test } from "vitest";
import { clientIp } from "../../src/http/index.ts";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type NodeOptions, rateLimit, rateLimitMiddleware } from "../../src/middleware/node.ts";
import { handle, headerOf, listen } from "./handler.ts";
import { eventually } from "./eventually.ts";
import { later } from "./later.ts";
import { optionsFor } from "./options-for.ts";
import { type Custom, middlewareSuite } from "./suite.ts";

const deny = ({ status, text }: Custom, _: unknown, response: ServerResponse) => response.writeHead(status).end(text);

middlewareSuite(
  "node:http",
  async (limiter, options) => {
    let listener = (request: IncomingMessage, response: ServerResponse): void => {
      try {
        handle(request, response);
      } catch {
        response.writeHead(500).end();
      }
    };
    for (const option of [...options].reverse()) {
      listener = rateLimit(limiter, optionsFor(option, headerOf, deny) as NodeOptions<string>, listener);
    }
    return listen(createServer(listener));
  },
  { wraps: true },
);

middlewareSuite("Connect", async (limiter, options) => {
  const app = connect();
  for (const option of options) {
    const limit = rateLimitMiddleware(limiter, optionsFor(option, headerOf, deny) as NodeOptions<string>);
    app.use(limit);
    if (option.twice === true) app.use(limit);
  }
  app.use((request: IncomingMessage, response: ServerResponse) => handle(request, response));
  return listen(createServer(app));
});

test("a request that is denied after its response began runs no listener, and ends", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const reported: unknown[] = [];
  const onError = (error: unknown) => void reported.push(error);
  const denied = () => expect.unreachable();
  const limited = rateLimit(limits, { name: "api", key: "k", onError, denied }, (_, response) => response.end("late"));
  const server = await listen(
    createServer((request, response) => {
      response.write("early, ");
      limited(request, response);
    }),
  );
  const texts = [];
  for (let i = 0; i < 2; i++) texts.push(await (await fetch(server.url)).text());
  expect(texts).toEqual(["early, late", "early, "]);
  expect(String(reported)).toContain("limit api denied a request whose response had already begun");
});

test("any number of limits that settle add one listener for each event of the response, and all of them settle", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 100, period: MINUTE } });
  const settled: number[] = [];
  const listeners = (response: ServerResponse) => ["finish", "close"].map((event) => response.listenerCount(event));
  const counts: number[][] = [];
  const limited = Array.from({ length: 12 }, (_, i) => i).reduce<
    (request: IncomingMessage, response: ServerResponse) => unknown
  >(
    (listener, i) => rateLimit(limits, { name: "api", key: "k", settle: () => void settled.push(i) }, listener),
    (_, response) => {
      counts.push(listeners(response));
      return response.end("hello");
    },
  );
  const server = await listen(
    createServer((request, response) => {
      counts.push(listeners(response));
      limited(request, response);
    }),
  );
  expect(await (await fetch(server.url)).text()).toBe("hello");
  await eventually(() => expect(settled).toHaveLength(12));
  const [before = [], within] = counts;
  expect(within).toEqual(before.map((count) => count + 1));
});

test.each([
  ["Connect", {}, ["next()"]],
  // Restify adds its methods to every request of the process, and its data to its own.
  ["Connect beside Restify", { startHandlerTimer: () => {} }, ["next()"]],
  // Otherwise Restify counts a denied request as in flight for ever, and emits no "after" for its log.
  ["Restify", { startHandlerTimer: () => {}, timers: [] }, ["next()", "next(false)"]],
])("with requests of %s, a denial calls what that framework needs, and returns nothing", (_, methods, expected) => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } }, { now: () => 0 });
  const limited = rateLimitMiddleware(limits, { name: "api", key: "k" });
  const calls: string[] = [];
  const returned: unknown[] = [];
  for (let i = 0; i < 2; i++) {
    const request = Object.assign(new IncomingMessage(new Socket()), methods);
    const next = (...given: unknown[]) => void calls.push(`next(${given.join()})`);
    returned.push(limited(request, new ServerResponse(request), next));
  }
  expect(calls).toEqual(expected);
  // Restify would call the next handler when a promise resolves.
  expect(returned).toEqual([undefined, undefined]);
});

test("a denial that closes within end(), as Nuxt's requests to itself do, returns a promise, which h3 1 waits for", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } }, { now: () => 0 });
  const limited = rateLimitMiddleware(limits, { name: "api", key: "k" });
  const returned: unknown[] = [];
  for (let i = 0; i < 2; i++) {
    const request = new IncomingMessage(new Socket());
    const response = Object.assign(new ServerResponse(request), {
      end: () => Object.defineProperty(response, "writableFinished", { value: true }).emit("close"),
    });
    returned.push(limited(request, response as unknown as ServerResponse, () => {}));
  }
  expect(returned).toEqual([undefined, expect.any(Promise)]);
  // h3 1 would send anything else as the body.
  expect(await returned[1]).toBeUndefined();
});

test("a response that is sent before the decision is settled when it ends", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } }, { now: () => 0 });
  const limited = rateLimit(limits, { name: "api", key: "k", settle: () => 0 }, (_, response) => response.end("late"));
  const server = await listen(
    createServer((request, response) => {
      response.write("early, ");
      limited(request, response);
    }),
  );
  await (await fetch(server.url)).text();
  await eventually(() => expect(limits.getValue("api", { key: "k" }).value).toBe(5));
});

/** The `write` of a socket that has no connection. */
function taken(_chunk: unknown, encoding: unknown, done = encoding): boolean {
  if (typeof done === "function") done();
  return true;
}

test.each([
  ["later", new Writable({ write: (_chunk, _encoding, done) => done() }) as Socket],
  // As serverless-http and @codegenie/serverless-express have it: "finish" comes while `end` is still called.
  ["synchronously", Object.assign(new Socket(), { write: taken })],
])("a response that ends %s and never closes, as on AWS Lambda, settles once and is not aborted", async (_, socket) => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } }, { now: () => 0 });
  const ends: unknown[] = [];
  const settle: NodeOptions<"api">["settle"] = ({ status, aborted }) => void ends.push([status, aborted]);
  const limited = rateLimit(limits, { name: "api", key: "k", settle }, (_, response) => response.end("hello"));
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  const finished = once(response, "finish");
  limited(request, response);
  await finished;
  expect(ends).toEqual([[200, false]]);
  response.emit("close");
  expect(ends).toEqual([[200, false]]);
});

test("a listener of node:http2 is limited by the peer's address, and its request and response have that module's types", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } }, { now: () => 0 });
  const keys: string[] = [];
  const limited = createServer2(
    rateLimit(
      limits,
      {
        name: "api",
        onDecision: (_, { authority, socket }) => void keys.push(authority, String(socket.remoteAddress)),
      },
      (request, response) => response.end(String(request.rateLimit.remaining)),
    ),
  );
  await once(limited.listen(0, "127.0.0.1"), "listening");
  const authority = `127.0.0.1:${(limited.address() as AddressInfo).port}`;
  const session = connect2(`http://${authority}`);
  const answers: unknown[] = [];
  for (let i = 0; i < 2; i++) {
    const stream = session.request({ ":path": "/" }).setEncoding("utf8");
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    answers.push([
      headers[":status"],
      headers["ratelimit"],
      await stream.reduce((text: string, part: string) => text + part, ""),
    ]);
  }
  expect(answers).toEqual([
    [200, '"api";r=0;t=60', "0"],
    [429, '"api";r=0;t=60', expect.stringContaining('"status":429')],
  ]);
  expect(keys).toEqual([authority, "127.0.0.1", authority, "127.0.0.1"]);
  session.close();
  const closed = once(limited, "close");
  limited.close(); // returns nothing on Node.js 26
  await closed;
});

test.each<[string, (left: (request: IncomingMessage) => Promise<unknown>) => NodeOptions<"api">]>([
  ["skip", (left) => ({ name: "api", skip: (request) => left(request).then(() => false) })],
  ["limits", (left) => ({ limits: (request) => left(request).then(() => [{ name: "api" }]) })],
  ["key", (left) => ({ name: "api", key: (request) => left(request).then(() => clientIp(request)) })],
])("a client that leaves while `%s` is awaited has the key of its address", async (_, option) => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  let decided = (): void => undefined;
  const decision = new Promise<void>((resolve) => {
    decided = resolve;
  });
  const client = { destroy: (): unknown => undefined };
  const left = (request: IncomingMessage) => {
    client.destroy();
    return once(request.socket, "close");
  };
  const options: NodeOptions<"api"> = { ...option(left), onDecision: () => decided() };
  const { url } = await listen(createServer(rateLimit(limits, options, (_, response) => response.end())));
  const sent = send(url).on("error", () => undefined);
  client.destroy = () => sent.destroy();
  sent.end();
  await decision;
  expect(limits.check("api", { key: "127.0.0.1" }).ok).toBe(false);
});

test("onError gets the error of a function in the options, and the request 500", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const failure = new Error("no session");
  const key = () => {
    throw failure;
  };
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const server = await listen(createServer(rateLimit(limits, { name: "api", key, onError }, () => {})));
  expect([(await fetch(server.url)).status, errors]).toEqual([500, [failure]]);
});

test("an error that the listener throws after a promise is the process's, as without a limit, and no 500 of the limit's", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: later() });
  const reported: unknown[] = [];
  const options = { name: "api", key: "k", onError: (error: unknown) => void reported.push(error) } as const;
  const limited = rateLimit(limits, options, () => {
    throw new Error("the listener fails");
  });
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  try {
    const unhandled = once(process, "unhandledRejection");
    const request = new IncomingMessage(new Socket());
    limited(request, new ServerResponse(request));
    expect(String((await unhandled)[0])).toBe("Error: the listener fails");
    expect(reported).toEqual([]);
  } finally {
    for (const other of others) process.on("unhandledRejection", other);
  }
});

test.each([
  ["in memory", undefined],
  ["after a promise", later()],
])(
  "what the listener returns is returned, decided %s: Micro sends it, and captureRejections of Node.js reads it",
  async (_, store) => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 2, period: MINUTE } }, store && { store });
    const failure = new Error("the listener fails");
    const listeners = [() => Promise.resolve("hello"), () => Promise.reject(failure)];
    const limited = rateLimit(limits, { name: "api", key: "k" }, () => listeners.shift()?.());
    const call = async () => {
      const request = new IncomingMessage(new Socket());
      return limited(request, new ServerResponse(request));
    };
    expect(await call()).toBe("hello");
    await expect(call()).rejects.toBe(failure);
    expect(await call()).toBeUndefined(); // denied
  },
);

test("a limited listener has the type of one that returns nothing: Firebase takes no other, and a linter no promise", () => {
  const onRequest = (handler: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>) => handler;
  const limits = defineLimits({ api: { kind: "token bucket", rate: 2, period: MINUTE } });
  for (const listener of [() => {}, async () => {}, () => "hello"]) {
    const limited = rateLimit(limits, { name: "api", key: "k" }, listener);
    expectTypeOf(limited).returns.toBeVoid();
    onRequest(limited);
  }
});
