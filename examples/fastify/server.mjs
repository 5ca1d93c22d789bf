// Fastify with a limit for all routes and another for one: node examples/fastify/server.mjs (PORT chooses the port)
import Fastify from "fastify";
import { defineLimits, SECOND } from "tidegate";
import { rateLimit } from "tidegate/fastify";

const limits = defineLimits({
  // Per client: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
  // For everybody together: what the search engine behind it stands.
  search: { kind: "token bucket", rate: 50, period: SECOND },
});

const app = Fastify();
app.addHook("onRequest", rateLimit(limits, { name: "api" }));
app.get("/", (request) => ({ message: "hello", remaining: request.rateLimit.remaining }));
app.get("/search", { onRequest: rateLimit(limits, { name: "search", key: false, cost: 5 }) }, () => ({ found: [] }));

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" }));
