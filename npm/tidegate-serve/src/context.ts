import type { Context, MiddlewareHandler } from "hono";
import type { HttpBindings } from "@hono/node-server";

/** A context of Hono on Node.js. */
export type Env = { Bindings: HttpBindings };

/** Answers a request of a route, or refuses it. */
export type Handler = (c: Context<Env>) => Response | Promise<Response>;

/** The response of a handler behind a middleware. */
export async function behind(middleware: MiddlewareHandler, c: Context<Env>, handle: Handler): Promise<Response> {
  const response = await middleware(c, async () => {
    c.res = await handle(c);
  });
  return response ?? c.res;
}
