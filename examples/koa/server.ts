// Koa with two limits: node examples/koa/server.ts (Node.js 22.18 or newer)
import Koa from "koa";
import type { AddressInfo } from "node:net";
import { defineLimits, SECOND } from "tidegate";
import { rateLimit } from "tidegate/koa";

const limits = defineLimits({
  // Per client: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
  // For all clients together: what the search engine behind it can take.
  search: { kind: "token bucket", rate: 50, period: SECOND },
});

const app = new Koa();
app.use(rateLimit(limits, { name: "api" })); // by the client's address; behind a proxy: client: { trust: 1 }
app.use(rateLimit(limits, { name: "search", key: false, count: 5, skip: (ctx) => ctx.path !== "/search" }));
app.use((ctx) => {
  const { remaining } = ctx.state.rateLimit;
  ctx.body = ctx.path === "/search" ? { found: [] } : { message: "hello", remaining };
});

const server = app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
