/**
 * Middleware for Hono, on every host that it runs on; and a store for hono-rate-limiter.
 *
 * @module
 */
import { PROBLEM_JSON } from "../http/problem.ts";
import type { Limiter } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { type Denial, gate, type Options } from "./gate.ts";
import { settleAtEnd } from "./ending.ts";
import { peerAddress } from "./peer.ts";

export { rateLimitBinding } from "./drop-in/binding.ts";
export { honoRateLimiterStore } from "./drop-in/hits.ts";
export type { Decided, Denial, GateOptions, Options } from "./gate.ts";

/** A context of Hono, by shape. */
export interface HonoContext {
  readonly req: { readonly raw: Request };
  readonly env: unknown;
  readonly res: Response;
  readonly error?: Error | undefined;
  readonly executionCtx: { waitUntil(work: Promise<unknown>): void };
  header(name: string, value?: string): void;
  set(key: never, value: never): void;
  body(body: string, status: never, headers: Record<string, string>): Response;
}

/** Settings of {@link rateLimit}. */
export type HonoOptions<C, N extends string> = Options<C, N> & {
  /** The response to a denied request in place of the problem+json; the fields are added to it. */
  denied?: ((context: C, denial: Denial) => Response | Promise<Response>) | undefined;
};

/**
 * Limits the requests that come past it. The decision is `c.get("rateLimit")`; a denied request gets 429 with
 * `Retry-After` and a problem+json. Node.js, Deno and Bun tell the client's address; on Workers say
 * `client: { header: "cf-connecting-ip" }`, or give a `key`.
 *
 * ```ts
 * app.use(rateLimit(limits, { name: "api", client: { header: "cf-connecting-ip" } }));
 * ```
 *
 * Throws an `InputError` at once where an option is wrong.
 */
export function rateLimit<C extends HonoContext, N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: HonoOptions<C, NoInfer<N>>,
): (context: C, next: () => Promise<void>) => Promise<Response | undefined> {
  const { admit } = gate(limiter, options);
  const { denied = refuse } = options;
  return async (context, next) => {
    const { raw } = context.req;
    const { headers, url } = raw;
    const admission = await admit(context, { address: peerAddress(raw, context.env), headers, url });
    if (admission === undefined) {
      await next();
      return undefined;
    }
    context.set("rateLimit" as never, admission.decided as never);
    if (admission.blocked) {
      const response = await denied(context, admission.denial());
      admission.tell(response.headers);
      return response;
    }
    const settle = settleAtEnd(admission, raw.signal, (work) => background(context, work));
    await next();
    admission.tell({
      get: (name) => context.res.headers.get(name),
      set: (name, value) => context.header(name, value),
    });
    settle(context.res.status, context.error);
    return undefined;
  };
}

const refuse = (context: HonoContext, { problem, status }: Denial): Response =>
  context.body(JSON.stringify(problem), status as never, { "Content-Type": PROBLEM_JSON });

/** Workers end what nobody waits for; elsewhere there is no such context, and reading it throws. */
function background(context: HonoContext, work: Promise<void>): void {
  try {
    context.executionCtx.waitUntil(work);
  } catch {
    // It runs on by itself.
  }
}
