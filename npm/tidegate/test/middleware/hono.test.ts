import { createAdaptorServer } from "@hono/node-server";
import { type Context, Hono } from "hono";
import type { Server } from "node:net";
import { type HonoOptions, rateLimit } from "../../src/middleware/hono.ts";
import { asked, listen } from "./handler.ts";
import { middlewareSuite } from "./suite.ts";
import { seen } from "./seen.ts";

middlewareSuite("Hono", async (limiter, options) => {
  const app = new Hono<{ Variables: { rateLimit: unknown } }>();
  for (const { custom, ...rest } of options) {
    const given = seen(rest, (context: Context, name) => context.req.header(name)) as HonoOptions<Context, string>;
    if (custom !== undefined) given.denied = () => new Response(custom.text, { status: custom.status });
    app.use(rateLimit(limiter, given) as never);
  }
  app.get("/", async (context) => {
    const { status, throws, hangs } = asked(context.req.url);
    if (throws) throw new Error("the handler fails");
    if (hangs) await new Promise(() => {});
    return new Response(JSON.stringify(context.get("rateLimit") ?? null), { status });
  });
  app.onError(() => new Response("it failed", { status: 500 }));
  return listen(createAdaptorServer({ fetch: app.fetch }) as Server);
});
