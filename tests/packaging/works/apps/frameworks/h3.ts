import { defineMiddleware, H3, serve, toResponse } from "h3";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { report } from "./client.js";

const limits = () => defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const limited = rateLimit(limits(), { name: "send" }, (_request, _event: object) => new Response("hello"));

type Next = () => Promise<Response>;
const behind = rateLimit(limits(), { name: "send" }, (_request, _event: object, next: Next) => next());

const app = new H3()
  .get("/limited", (event) => limited(event.req, event))
  .use(
    "/behind",
    defineMiddleware((event, next) => behind(event.req, event, async () => toResponse(await next(), event))),
  )
  .get("/behind", () => "hello");

const server = await serve(app, { port: 0, silent: true }).ready();
const port = Number(new URL(server.url ?? "").port);
await report([port, "/limited"], [port, "/behind"]);
