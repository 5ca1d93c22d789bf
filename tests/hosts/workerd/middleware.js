// The middleware for fetch handlers and for Hono, each before its own route.
import { Hono } from "hono";
import { defineLimits, HOUR } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { rateLimit as honoRateLimit } from "tidegate/hono";

const limits = defineLimits({ api: { kind: "token bucket", rate: 2, period: HOUR } });
const client = { header: "cf-connecting-ip" };

const handler = rateLimit(limits, { name: "api", client }, () => new Response("fetch"));
const app = new Hono();
app.use(honoRateLimit(limits, { name: "api", key: () => "everybody's" }));
app.get("/hono", (context) => context.text("hono"));

export default {
  fetch: (request, env, context) =>
    new URL(request.url).pathname === "/hono" ? app.fetch(request, env, context) : handler(request, env, context),
};
