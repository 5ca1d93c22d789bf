/** Middleware that was mounted in a framework that is not its own. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { expect, test } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { rateLimit as ofExpress } from "../../src/middleware/express.ts";
import { rateLimit as ofFastify } from "../../src/middleware/fastify.ts";
import { rateLimit as ofNode, rateLimitMiddleware as ofConnect } from "../../src/middleware/node.ts";
import { listen } from "./handler.ts";

/** Mounts a middleware of any framework, sends a request, and returns the error that the framework got. */
const MOUNTED = {
  async Koa(middleware: object): Promise<unknown> {
    const app = new Koa();
    const failed = new Promise<unknown>((resolve) => app.on("error", resolve));
    const server = await listen(createServer(app.use(middleware as Koa.Middleware).callback()));
    await fetch(server.url);
    return failed;
  },
  async Hono(middleware: object): Promise<unknown> {
    const app = new Hono();
    let failed: unknown;
    app.use(middleware as never).get("/", (context) => context.text("hello"));
    app.onError((error, context) => {
      failed = error;
      return context.text("failed", 500);
    });
    await app.request("/");
    return failed;
  },
  async Express(middleware: object): Promise<unknown> {
    const app = express();
    let failed: unknown;
    app.use(middleware as express.RequestHandler);
    app.use(((error, _request, response, _next) => {
      failed = error;
      response.status(500).end();
    }) as express.ErrorRequestHandler);
    const server = await listen(createServer(app));
    await fetch(server.url);
    return failed;
  },
  async Fastify(middleware: object): Promise<unknown> {
    const app = fastify();
    let failed: unknown;
    app.addHook("onRequest", middleware as never);
    app.setErrorHandler((error, _request, reply) => {
      failed = error;
      return reply.code(500).send();
    });
    app.get("/", () => "hello");
    await app.inject("/");
    return failed;
  },
  async "node:http"(middleware: object): Promise<unknown> {
    const server = await listen(
      createServer((request, response) => {
        try {
          (middleware as (request: IncomingMessage, response: ServerResponse) => unknown)(request, response);
        } catch (error) {
          response.end(String(error));
        }
      }),
    );
    return (await fetch(server.url)).text();
  },
} as const;

const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
const options = { name: "api", key: "k" } as const;
const MIDDLEWARE = {
  Express: ofExpress(limits, options),
  Fastify: ofFastify(limits, options),
  "node:http": ofNode(limits, options, (_request, response) => response.end("hello")),
  Connect: ofConnect(limits, options),
};

test.each([
  ["Fastify", "Koa"],
  ["Fastify", "Hono"],
  ["Fastify", "Express"],
  ["Fastify", "node:http"],
  ["Express", "Fastify"],
  ["Connect", "Fastify"],
  ["node:http", "Koa"],
  ["node:http", "Hono"],
  ["node:http", "Fastify"],
] as const)(
  "the error of the middleware for %s in %s names the import that another framework needs",
  async (of, within) => {
    const error = await MOUNTED[within](MIDDLEWARE[of]);
    expect(String(error)).toContain(
      `must be ${of}'s: import the rateLimit of your framework, such as that of tidegate/`,
    );
  },
);
