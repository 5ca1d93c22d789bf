// The middleware for fetch handlers and for Hono, each before its own routes.
import { DurableObject } from "cloudflare:workers";
import { Hono } from "hono";
import { defineLimits, HOUR } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { rateLimit as honoRateLimit } from "tidegate/hono";

const limits = defineLimits({ api: { kind: "token bucket", rate: 2, period: HOUR } });
const client = { header: "cf-connecting-ip" };

/** A WebSocket in a Durable Object: the headers of its response are immutable for the Worker that passes it on. */
export class Room extends DurableObject {
  fetch() {
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    return new Response(null, { status: 101, webSocket: client });
  }
}
const join = (env, request) => env.ROOM.get(env.ROOM.idFromName("room")).fetch(request);
const isSocket = (request) => request.headers.get("upgrade") === "websocket";

const handler = rateLimit(limits, { name: "api", client }, (request, env) =>
  isSocket(request) ? join(env, request) : new Response("fetch"),
);
const app = new Hono();
app.use(honoRateLimit(limits, { name: "api", key: (context) => `hono ${context.req.header("cf-connecting-ip")}` }));
app.get("/hono", (context) => (isSocket(context.req.raw) ? join(context.env, context.req.raw) : context.text("hono")));

export default {
  fetch: (request, env, context) =>
    new URL(request.url).pathname === "/hono" ? app.fetch(request, env, context) : handler(request, env, context),
};
