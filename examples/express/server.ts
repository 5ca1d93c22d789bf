// Express with two limits: node examples/express/server.ts (Node.js 22.18 or newer)
import express from "express";
import { defineLimits, SECOND } from "tidegate";
import { rateLimit } from "tidegate/express";

const limits = defineLimits({
  // Per client: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
  // For all clients together: what the search engine behind it can take.
  search: { kind: "token bucket", rate: 50, period: SECOND },
});

const app = express();
app.use(rateLimit(limits, { name: "api" })); // by the client's address; behind a proxy: client: { trust: 1 }
app.get("/", (request, response) => {
  response.json({ message: "hello", remaining: request.rateLimit.remaining });
});
app.get("/search", rateLimit(limits, { name: "search", key: false, count: 5 }), (_request, response) => {
  response.json({ found: [] });
});

const server = app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`http://127.0.0.1:${address?.port}`);
});
