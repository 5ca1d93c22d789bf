// Hono on Node.js; the app itself runs on every host of Hono's: node examples/hono/server.ts (Node.js 22.18 or newer)
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { defineLimits, SECOND } from "tidegate";
import { rateLimit } from "tidegate/hono";

const limits = defineLimits({
  // Per client: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
  // For all clients together: what the search engine behind it can take.
  search: { kind: "token bucket", rate: 50, period: SECOND },
});

const app = new Hono();
app.use(rateLimit(limits, { name: "api" })); // on Workers: client: { header: "cf-connecting-ip" }
app.get("/", (c) => c.json({ message: "hello", remaining: c.get("rateLimit").remaining }));
app.get("/search", rateLimit(limits, { name: "search", key: false, count: 5 }), (c) => c.json({ found: [] }));

serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000), hostname: "127.0.0.1" }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`);
});
