import { RestApplication } from "@loopback/rest";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/express";
import { report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const app = new RestApplication({ rest: { port: 0, host: "127.0.0.1" } });
app.expressMiddleware("middleware.limited", rateLimit(limits, { name: "send" }));
app.route("get", "/hello", { responses: {} }, () => "hello");
await app.start();
await report([Number(new URL(app.restServer.url ?? "").port), "/hello"]);
