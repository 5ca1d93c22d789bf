// The same application behind each limiter. Each keeps its state in memory, has the client's address as its key, never denies
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

function onExpress(middleware = (_request, _response, next) => next()) {
  const app = express();
  app.use(middleware);
  app.get("/", (_request, response) => response.end("hello"));
  return app;
}

async function onFastify(add = (app) => app.addHook("onRequest", (_request, _reply, done) => done())) {
  const app = fastify();
  await add(app);
  app.get("/", (_request, reply) => reply.send("hello"));
  await app.ready();
  return app.routing;
}

/** By framework: a middleware that does nothing first, then tidegate, then the peers. Each makes a listener of `node:http`. */
export const applications = {
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
