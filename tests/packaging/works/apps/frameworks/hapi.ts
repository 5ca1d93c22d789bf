import { server as serverOf } from "@hapi/hapi";
import { defineLimits, MINUTE } from "tidegate";
import { appendRateLimitHeaders, clientIp, problem, statusOf } from "tidegate/http";
import { report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });

const server = serverOf({ port: 0, host: "127.0.0.1" });
server.ext("onRequest", async (request, h) => {
  const d = await limits.limit("send", { key: clientIp(request.raw.req) });
  appendRateLimitHeaders(request.raw.res, d);
  if (d.ok) return h.continue;
  return h.response(problem(d)).code(statusOf(d)).type("application/problem+json").takeover();
});
server.route({ method: "GET", path: "/hello", handler: () => "hello" });
await server.start();
await report([Number(server.info.port), "/hello"]);
