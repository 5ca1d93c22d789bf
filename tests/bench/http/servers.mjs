// The same server behind each limiter. Each keeps its state in memory, has the client's address as its key, never denies
// (the cost of a call is measured), and sets rate-limit headers.
import fastifyRateLimit from "@fastify/rate-limit";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import fastify from "fastify";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit as tidegateExpress } from "tidegate/express";
import { rateLimit as tidegateFastify } from "tidegate/fastify";

const MOST = 1e9;
const limits = () => defineLimits({ api: { kind: "token bucket", rate: MOST, period: MINUTE } });
const theirs = { windowMs: MINUTE, limit: MOST, legacyHeaders: false };

async function onExpress(middleware) {
  const app = express();
  if (middleware !== undefined) app.use(middleware);
  app.get("/", (_request, response) => response.end("hello"));
  return new Promise((done) => {
    const server = app.listen(0, "127.0.0.1", () => done(server.address().port));
  });
}

async function onFastify(add = () => {}) {
  const app = fastify();
  await add(app);
  app.get("/", (_request, reply) => reply.send("hello"));
  await app.listen({ host: "127.0.0.1", port: 0 });
  return app.server.address().port;
}

/** By framework: no limiter first, then tidegate, then the peers. Each starts a server and resolves with its port. */
export const servers = {
  express: {
    "no limiter": () => onExpress(),
    tidegate: () => onExpress(tidegateExpress(limits(), { name: "api" })),
    "express-rate-limit, draft-6": () => onExpress(expressRateLimit({ ...theirs, standardHeaders: "draft-6" })),
    "express-rate-limit, draft-8": () => onExpress(expressRateLimit({ ...theirs, standardHeaders: "draft-8" })),
  },
  fastify: {
    "no limiter": () => onFastify(),
    tidegate: () => onFastify((app) => app.addHook("onRequest", tidegateFastify(limits(), { name: "api" }))),
    "@fastify/rate-limit": () => onFastify((app) => app.register(fastifyRateLimit, { max: MOST, timeWindow: MINUTE })),
  },
};
