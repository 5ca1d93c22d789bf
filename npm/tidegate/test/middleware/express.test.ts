import { createServer, ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import express5 from "express";
import express4 from "express4";
import { Server } from "socket.io";
import { io } from "socket.io-client";
import { expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type ExpressOptions, rateLimit } from "../../src/middleware/express.ts";
import { handle, headerOf, listen } from "./handler.ts";
import { optionsFor } from "./options-for.ts";
import { middlewareSuite } from "./suite.ts";

for (const [version, express] of [
  ["5", express5],
  ["4", express4 as unknown as typeof express5],
] as const) {
  middlewareSuite(`Express ${version}`, async (limiter, options) => {
    const app = express();
    for (const option of options) {
      const given = optionsFor(option, headerOf, ({ status, text }, _, response: express5.Response) =>
        response.status(status).end(text),
      );
      const limit = rateLimit(limiter, given as ExpressOptions<string>);
      app.use(limit);
      if (option.twice === true) app.use(limit);
    }
    app.get("/", handle as never);
    app.use(((_error, _request, response, _next) => void response.status(500).end()) as express5.ErrorRequestHandler);
    return listen(createServer(app));
  });

  test(`Express ${version}: a request that is denied after its response began runs no handler, ends, and is reported`, async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
    const reported: unknown[] = [];
    let handled = 0;
    const app = express();
    app.use((_request, response, next) => {
      response.write("early, ");
      next();
    });
    app.use(rateLimit(limits, { name: "api", key: "k", onError: (error) => void reported.push(error) }));
    app.get("/", (_request, response) => {
      handled++;
      response.end("late");
    });
    const server = await listen(createServer(app));
    const text = async () => (await fetch(server.url)).text();
    expect([await text(), reported.length, await text(), handled]).toEqual(["early, late", 0, "early, ", 1]);
    expect(String(reported)).toContain("limit api denied a request whose response had already begun");
  });

  test(`Express ${version}: with trust proxy the client is req.ip, and without it a warning names the setting`, async () => {
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    const statuses = async (trust: number | undefined) => {
      const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
      const app = express();
      if (trust !== undefined) app.set("trust proxy", trust);
      app.use(rateLimit(limits, { name: "api" }));
      app.get("/", (_request, response) => void response.end());
      const server = await listen(createServer(app));
      const from = async (address: string) =>
        (await fetch(server.url, { headers: { "x-forwarded-for": address } })).status;
      const found = [await from("192.0.2.1"), await from("192.0.2.2"), await from("6.6.6.6, 192.0.2.1")];
      // As some proxies write it, such as Azure's application gateway.
      found.push(await from("192.0.2.3:4711"), await from("[2001:db8::1]:4711"), await from("192.0.2.3:4712"));
      return found;
    };
    expect(await statuses(1)).toEqual([200, 200, 429, 200, 200, 429]);
    expect(warned).not.toHaveBeenCalled();
    expect(await statuses(undefined)).toEqual([200, 429, 429, 429, 429, 429]);
    expect(warned.mock.calls.map(String)).toEqual([expect.stringContaining('app.set("trust proxy", 1)')]);
  });

  test(`Express ${version}: trust proxy: true, with which clients choose their address, is warned of once, where a request has the header`, async () => {
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    const limits = defineLimits({ api: { kind: "token bucket", rate: 9, period: MINUTE } });
    const app = express();
    app.set("trust proxy", true);
    app.use(rateLimit(limits, { name: "api" }), rateLimit(limits, { name: "api", client: { trust: 1 } }));
    app.get("/", (_request, response) => void response.end());
    const server = await listen(createServer(app));
    await fetch(server.url);
    expect(warned).not.toHaveBeenCalled();
    for (const address of ["127.0.0.1", "127.0.0.1, 192.0.2.1"])
      await fetch(server.url, { headers: { "x-forwarded-for": address } });
    expect(warned.mock.calls.map(String)).toEqual([
      "tidegate: every proxy is trusted, so a client that writes X-Forwarded-For chooses its address, and its limit: " +
        'set app.set("trust proxy", 1), or client: { trust: 1 } for one proxy, or give a key.',
    ]);
  });

  test(`Express ${version}: mounted on a path, it reads the query`, async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: MINUTE } });
    const app = express();
    app.use("/chat", rateLimit(limits, { name: "api", key: "k", count: { query: "n", max: 9 } }));
    app.get("/chat", (request, response) => void response.json(request.rateLimit.remaining));
    const server = await listen(createServer(app));
    expect(await (await fetch(`${server.url}/chat?n=4`)).json()).toBe(6);
  });

  test(`Express ${version}: a number in brackets, which its handler may read, costs what it states`, async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 100, period: MINUTE } }, { now: () => 1e12 });
    const app = express();
    app.use(rateLimit(limits, { name: "api", key: "k", count: { query: "n", max: 9 } }));
    app.get("/", (request, response) => void response.json(Number(request.query["n"] ?? 0)));
    const server = await listen(createServer(app));
    const read = async (path: string) => (await fetch(server.url + path)).json();
    // The parser of Express 5 reads no brackets.
    const stated = version === "4" ? 4 : 0;
    expect([await read("/?[n]=4"), await read("/?n[]=4"), await read("/?n[0]=4")]).toEqual([stated, stated, stated]);
    expect(limits.getValue("api", { key: "k" }).value).toBe(100 - 12);
  });
}

test("a WebSocket that was opened has not failed when it closes: skipFailedRequests gives nothing back", async () => {
  const limits = defineLimits({ connect: { kind: "token bucket", rate: 2, period: MINUTE } }, { now: () => 0 });
  const ends: unknown[] = [];
  const server = createServer();
  const sockets = new Server(server);
  const settle: ExpressOptions<"connect">["settle"] = ({ status, aborted }) => void ends.push([status, aborted]);
  sockets.engine.use(rateLimit(limits, { name: "connect", skipFailedRequests: true }));
  sockets.engine.use(rateLimit(limits, { name: "connect", key: "seen", settle }));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const client = io(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { transports: ["websocket"] });
  await new Promise<void>((connected) => client.once("connect", connected));
  client.close();
  await vi.waitFor(() => expect(ends).toEqual([[101, false]]));
  expect(limits.getValue("connect", { key: "127.0.0.1" }).value).toBe(1);
  sockets.close();
});

test("a WebSocket whose request is routed after its handshake, with a response without a socket, as by express-ws, has not failed", async () => {
  const limits = defineLimits({ connect: { kind: "token bucket", rate: 2, period: MINUTE } }, { now: () => 0 });
  const ends: unknown[] = [];
  const settle: ExpressOptions<"connect">["settle"] = ({ status, aborted }) => void ends.push([status, aborted]);
  const app = express5();
  app.use(rateLimit(limits, { name: "connect", settle }));
  const server = createServer();
  const opened = new Promise<void>((reached) => app.use(() => reached()));
  server.on("upgrade", (request, socket) => {
    socket.resume().once("end", () => socket.destroy());
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    app(request, new ServerResponse(request));
  });
  const { url } = await listen(server);
  const client = connect(Number(new URL(url).port), "127.0.0.1").resume();
  client.write("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  await opened;
  client.end();
  await vi.waitFor(() => expect(ends).toEqual([[101, false]]));
});

test.each(["is a request like any other", "is routed as an upgrade"])(
  "a client that asks for a WebSocket and leaves before the response has aborted, where that %s",
  async (how) => {
    const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { now: () => 0 });
    const ends: unknown[] = [];
    const app = express5();
    const settle: ExpressOptions<"login">["settle"] = ({ status, aborted }) => void ends.push([status, aborted]);
    const key = "ada";
    app.use(rateLimit(limits, { name: "login", key, skipSuccessfulRequests: true }));
    app.use(rateLimit(limits, { name: "login", key: "seen", settle }));
    // A handler that has not answered yet.
    const reached = new Promise<void>((begun) => {
      app.use((_request, response) => {
        if (how === "is a request like any other") response.writeProcessing();
        begun();
      });
    });
    const server = createServer(app);
    if (how === "is routed as an upgrade") {
      server.on("upgrade", (request, socket) => {
        const response = new ServerResponse(request);
        response.assignSocket(socket as Socket);
        socket.resume().once("end", () => socket.destroy());
        app(request, response);
      });
    }
    const { url } = await listen(server);
    const client = connect(Number(new URL(url).port), "127.0.0.1");
    client.write("GET /login HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    await reached;
    client.destroy();
    await vi.waitFor(() => expect(ends).toEqual([[200, true]]));
    expect(limits.getValue("login", { key }).value).toBe(4);
  },
);

test("a client that aborts its requests is not limited by skipFailedRequests, but by a settle that reads aborted", async () => {
  const handled = async (options: Pick<ExpressOptions<"api">, "settle" | "skipFailedRequests">) => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 2, period: MINUTE } }, { now: () => 0 });
    let [runs, connections] = [0, 0];
    let onRun = (): void => undefined;
    const app = express5();
    app.use(rateLimit(limits, { name: "api", ...options }), () => {
      runs++;
      onRun();
    });
    const { server, url } = await listen(createServer(app));
    server.on("connection", (socket) => {
      connections++;
      socket.once("close", () => connections--);
    });
    for (let i = 0; i < 5; i++) {
      // Not by polling, which would move the fake clock of a later test.
      const ran = new Promise<boolean>((done) => (onRun = () => done(false)));
      const client = connect(Number(new URL(url).port), "127.0.0.1");
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      const denied = new Promise<boolean>((done) => client.once("data", () => done(true)));
      const isDenied = await Promise.race([denied, ran]);
      client.destroy();
      if (isDenied) break;
      await vi.waitFor(() => expect(connections).toBe(0));
    }
    return runs;
  };
  expect(await handled({ skipFailedRequests: true })).toBe(5);
  expect(await handled({ settle: ({ status, aborted }) => (status >= 400 && !aborted ? 0 : undefined) })).toBe(2);
});
