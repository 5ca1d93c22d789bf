// Fastify with a limit for all routes and another for one: node examples/fastify/server.ts (Node.js 22.18 or newer)
import Fastify from "fastify";
import { defineLimits, SECOND } from "tidegate";
import { rateLimit } from "tidegate/fastify";

const limits = defineLimits({
  // Per client: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
  // For all clients together: what the search engine behind it can take.
  search: { kind: "token bucket", rate: 50, period: SECOND },
});

const app = Fastify();
app.addHook("onRequest", rateLimit(limits, { name: "api" }));
app.get("/", (request) => ({ message: "hello", remaining: request.rateLimit.remaining }));
app.get("/search", { onRequest: rateLimit(limits, { name: "search", key: false, count: 5 }) }, () => ({ found: [] }));

console.log(await app.listen({ port: Number(process.env["PORT"] ?? 3000), host: "127.0.0.1" }));
