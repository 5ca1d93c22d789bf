import { createAdaptorServer } from "@hono/node-server";
import type { Server } from "node:net";
import { decisionOf, type FetchOptions, rateLimit } from "../../src/middleware/fetch.ts";
import { asked, listen } from "./handler.ts";
import { middlewareSuite } from "./suite.ts";
import { seen } from "./seen.ts";

middlewareSuite("fetch handlers", async (limiter, options) => {
  let handler = async (request: Request, _host: unknown): Promise<Response> => {
    const { status, throws, hangs } = asked(request.url);
    if (throws) throw new Error("the handler fails");
    if (hangs) await new Promise(() => {});
    return new Response(JSON.stringify(decisionOf(request) ?? null), { status });
  };
  for (const { custom, ...rest } of [...options].reverse()) {
    const given = seen(rest, (request: Request, name) => request.headers.get(name) ?? undefined) as FetchOptions<
      Request,
      string
    >;
    if (custom !== undefined) given.denied = () => new Response(custom.text, { status: custom.status });
    handler = rateLimit(limiter, given, handler);
  }
  const answered = (request: Request, host: unknown) =>
    handler(request, host).catch(() => new Response(null, { status: 500 }));
  return listen(createAdaptorServer({ fetch: answered }) as Server);
});
