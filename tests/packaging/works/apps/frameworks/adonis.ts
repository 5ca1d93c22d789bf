import { createServer } from "node:http";
import { AppFactory } from "@adonisjs/core/factories/app";
import { ServerFactory } from "@adonisjs/core/factories/http";
import type { HttpContext } from "@adonisjs/core/http";
import type { NextFn } from "@adonisjs/core/types/http";
import { defineLimits, MINUTE } from "tidegate";
import { appendRateLimitHeaders, clientIp, problem, statusOf } from "tidegate/http";
import { portOf, report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });

class LimitMiddleware {
  async handle({ request, response }: HttpContext, next: NextFn) {
    const d = await limits.limit("send", { key: clientIp({ address: request.ip() }) });
    appendRateLimitHeaders(response.response, d);
    if (d.ok) return next();
    response.status(statusOf(d)).type("application/problem+json").send(problem(d));
  }
}
const app = new AppFactory().create(new URL("./", import.meta.url), () => {});
await app.init();
await app.boot();
const server = new ServerFactory().merge({ app: app as never }).create();
server.use([async () => ({ default: LimitMiddleware })]);
server.getRouter().get("/hello", () => "hello");
await server.boot();
const http = createServer((req, res) => server.handle(req, res));
server.setNodeServer(http);
http.listen(0, () => report([portOf(http), "/hello"]));
