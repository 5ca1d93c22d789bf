import { node } from "@elysiajs/node";
import { Elysia } from "elysia";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { clientIp, problem, rateLimitHeaders, statusOf } from "tidegate/http";
import { freePort, report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });

const api = new Elysia().get("/", () => "hello");
const key = () => "all";
const mounted = new Elysia().mount(
  "/api",
  rateLimit(limits, { name: "send", key }, (request) => api.fetch(request)),
);
for (const status of [200, 200, 429]) {
  const response = await mounted.handle(new Request("http://localhost/api"));
  if (response.status !== status || !response.headers.has("ratelimit")) throw new Error(`mounted: ${response.status}`);
}

const app = new Elysia({ adapter: node() })
  .onRequest(async ({ request, set, status }) => {
    const d = await limits.limit("send", { key: clientIp({ address: (request as { ip?: string }).ip }) });
    Object.assign(set.headers, rateLimitHeaders(d));
    return d.ok ? undefined : status(statusOf(d), problem(d));
  })
  .get("/", () => "hello");
const port = await freePort();
app.listen(port, () => report([port, "/"]));
