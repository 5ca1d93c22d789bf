import { createAdaptorServer } from "@hono/node-server";
import type { Server } from "node:net";
import { decisionOf, type FetchOptions, rateLimit } from "../../src/middleware/fetch.ts";
import { rateLimit as rateLimitNext } from "../../src/middleware/next.ts";
import { listen, orders } from "./handler.ts";
import { seen } from "./seen.ts";
import { middlewareSuite, type Serve } from "./suite.ts";

const serve =
  (limit: typeof rateLimitNext): Serve =>
  async (limiter, options) => {
    let handler = async (request: Request, _host: unknown): Promise<Response> => {
      const { status, throws, hangs } = orders(request.url);
      if (throws) throw new Error("the handler fails");
      if (hangs) await new Promise(() => {});
      return new Response(JSON.stringify(decisionOf(request) ?? null), { status });
    };
    for (const { custom, ...rest } of [...options].reverse()) {
      const given = seen(rest, (request: Request, name) => request.headers.get(name) ?? undefined) as FetchOptions<
        Request,
        string
      >;
      if (custom !== undefined) {
        given.denied = async () => {
          if (typeof custom !== "object") throw new Error("denied fails");
          return new Response(custom.text, { status: custom.status });
        };
      }
      handler = limit(limiter, given, handler);
    }
    const answered = (request: Request, host: unknown) =>
      handler(request, host).catch(() => new Response(null, { status: 500 }));
    return listen(createAdaptorServer({ fetch: answered }) as Server);
  };

middlewareSuite("fetch handlers", serve(rateLimit), { wraps: true });

// The server in front of Next.js sets the header; here the peer's address is passed beside the request.
const next: typeof rateLimitNext = (limiter, options, handler) =>
  rateLimitNext(limiter, { client: { trust: 0 }, ...options }, handler);
middlewareSuite("Next.js handlers", serve(next), { wraps: true, warns: false });
