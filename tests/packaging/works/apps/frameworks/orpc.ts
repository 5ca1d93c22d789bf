import { createServer } from "node:http";
import { createORPCClient } from "@orpc/client";
import { RPCLink } from "@orpc/client/fetch";
import { ORPCError, os, type RouterClient } from "@orpc/server";
import { RPCHandler } from "@orpc/server/fetch";
import { ResponseHeadersPlugin, type ResponseHeadersPluginContext } from "@orpc/server/plugins";
import { createServerAdapter } from "@whatwg-node/server";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { problem, rateLimitHeaders } from "tidegate/http";
import { portOf, report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });

interface Context extends ResponseHeadersPluginContext {
  user: string;
}
const limited = os.$context<Context>().use(async ({ context, next }) => {
  const d = await limits.limit("send", { key: context.user });
  for (const [name, value] of Object.entries(rateLimitHeaders(d))) context.resHeaders?.set(name, value);
  if (!d.ok) throw new ORPCError("TOO_MANY_REQUESTS", { message: problem(d)?.detail ?? "denied" });
  return next();
});
const router = {
  limited: limited.handler(() => "hello"),
  open: os.route({ method: "GET" }).handler(() => "hello"),
};
const handler = new RPCHandler(router, { plugins: [new ResponseHeadersPlugin()] });
async function handle(request: Request): Promise<Response> {
  const { response } = await handler.handle(request, { context: { user: "ada" } });
  return response ?? new Response("not found", { status: 404 });
}
const whole = rateLimit(limits, { name: "send" }, (request, _beside: object) => handle(request));

const server = createServer(
  createServerAdapter((request: Request, beside: object) =>
    request.url.endsWith("/open") ? whole(request, beside) : handle(request),
  ),
);
server.listen(0, async () => {
  const link = new RPCLink({ url: `http://127.0.0.1:${portOf(server)}` });
  const client: RouterClient<typeof router> = createORPCClient(link);
  const call = () => client.limited().catch((error: ORPCError<string, unknown>) => error.code);
  const got = `${[await call(), await call(), await call()]}`;
  if (got !== "hello,hello,TOO_MANY_REQUESTS") throw new Error(`oRPC's client got ${got}`);
  await report([portOf(server), "/open"]);
});
