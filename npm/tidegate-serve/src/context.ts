import type { HttpBindings } from "@hono/node-server";

/** A context of Hono on Node.js. */
export type Env = { Bindings: HttpBindings };
