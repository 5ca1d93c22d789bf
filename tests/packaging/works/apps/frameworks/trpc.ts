import { createServer } from "node:http";
import { createTRPCClient, httpBatchLink, type TRPCClientError } from "@trpc/client";
import { initTRPC, TRPCError } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { createServerAdapter } from "@whatwg-node/server";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { problem, rateLimitHeaders } from "tidegate/http";
import { portOf, report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });

const t = initTRPC.context<{ user: string; resHeaders: Headers }>().create();
const limited = t.procedure.use(async ({ ctx, next }) => {
  const d = await limits.limit("send", { key: ctx.user });
  for (const [name, value] of Object.entries(rateLimitHeaders(d))) ctx.resHeaders.set(name, value);
  if (!d.ok) throw new TRPCError({ code: "TOO_MANY_REQUESTS", message: problem(d)?.detail ?? "denied" });
  return next();
});
const router = t.router({ limited: limited.query(() => "hello"), open: t.procedure.query(() => "hello") });
const handle = (endpoint: string, req: Request) =>
  fetchRequestHandler({ endpoint, req, router, createContext: ({ resHeaders }) => ({ user: "ada", resHeaders }) });

const whole = rateLimit(limits, { name: "send" }, (request, _beside: object) => handle("/whole", request));
const message = {
  error: { message: "Too many requests", code: -32029, data: { code: "TOO_MANY_REQUESTS", httpStatus: 429 } },
};
const count = (request: Request) => new URL(request.url).pathname.split(/,|%2c/i).length;
const batches = rateLimit(limits, { name: "send", key: "batches", count, message }, (request) =>
  handle("/batches", request),
);

const server = createServer(
  createServerAdapter((request: Request, beside: object) => {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/whole")) return whole(request, beside);
    return pathname.startsWith("/batches") ? batches(request) : handle("/single", request);
  }),
);

/** What tRPC's client gets of a batch of two calls, and of one call after it. */
async function called(endpoint: string, procedure: "limited" | "open"): Promise<unknown[]> {
  const url = `http://127.0.0.1:${portOf(server)}${endpoint}`;
  const client = createTRPCClient<typeof router>({ links: [httpBatchLink({ url })] });
  const call = () => client[procedure].query().catch((error: TRPCClientError<typeof router>) => error.data?.code);
  return [...(await Promise.all([call(), call()])), await call()];
}

server.listen(0, async () => {
  for (const got of [await called("/batches", "open"), await called("/single", "limited")]) {
    if (`${got}` !== "hello,hello,TOO_MANY_REQUESTS") throw new Error(`tRPC's client got ${got}`);
  }
  await report([portOf(server), "/whole/open"]);
});
