// Limits in memory on Bun's own server (PORT chooses where):
//   bun main.js
import { defineLimits, SECOND } from "tidegate";
import { rateLimit } from "tidegate/fetch";

const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 3 * SECOND, capacity: 3 } });

const server = Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  hostname: "127.0.0.1",
  fetch: rateLimit(limits, { name: "api" }, () => new Response("hello\n")),
});
console.log(`listening on ${server.url}`);
