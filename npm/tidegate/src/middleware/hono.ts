/**
 * Middleware for Hono, on every host that it runs on; and a store for hono-rate-limiter.
 *
 * @module
 */
import type { Context, Env, MiddlewareHandler } from "hono";
import type { Limiter } from "../limiter/limiter.ts";
import { refused, settlement, withFields } from "./fetch-response.ts";
import { Gate } from "./gate.ts";
import { checkContext, type Denial, type Options, type RequestDecision } from "./options.ts";
import { outgoingOf, peerOf } from "./fetch-peer.ts";
import type { MaybePromise } from "../limit/maybe-promise.ts";
import { privateField } from "./private-field.ts";

export { type RateLimitBinding, rateLimitBinding } from "./drop-in/binding.ts";
export { type HitStore, honoRateLimiterStore, type LocalHitStore } from "./drop-in/hits.ts";
export type { HitOptions } from "./drop-in/options.ts";
export type { Denial, RequestDecision } from "./options.ts";

declare module "hono" {
  interface ContextVariableMap {
    /** The decision of the last `rateLimit` that the request came through; absent before one, and if `skip` was true. */
    rateLimit: RequestDecision;
  }
}

/** Returns the response to a denied request; the fields are added to it. */
export type HonoDenied<E extends Env> = (context: Context<E>, denial: Denial) => MaybePromise<Response>;

/** Settings of {@link rateLimit}: {@link Options}. */
export type HonoOptions<N extends string, E extends Env = Env> = Options<Context<E>, N, HonoDenied<E>>;

/**
 * Limits requests. The decision is `c.get("rateLimit")`; a denied request gets 429 with `Retry-After` and a problem+json,
 * and errors go to `app.onError`. A middleware that is mounted twice decides once. Node.js, Deno and Bun report the
 * client's address; on Workers use `client: { header: "cf-connecting-ip" }`, or a `key`.
 *
 * ```ts
 * app.use(rateLimit(limits, { name: "api", client: { header: "cf-connecting-ip" } }));
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
// biome-ignore lint/suspicious/noExplicitAny: without its own environment a handler takes the application's
export function rateLimit<N extends string, E extends Env = any>(
  limiter: Limiter<N>,
  options: HonoOptions<NoInfer<N>, E>,
): MiddlewareHandler<E> {
  const made = new Gate(limiter, options, undefined, privateField());
  const { denied } = options;
  return async (context, next) => {
    const raw = context.req?.raw;
    checkContext("Hono", context, raw);
    const { headers, url } = raw;
    const settling = settlement(made, raw, (work) => background(context, work), outgoingOf(context.env));
    const admission = await made.admit(context, Object.assign(peerOf(raw, context.env), { headers, url }), raw);
    if (admission === undefined) {
      await next();
      return undefined;
    }
    context.set("rateLimit" as never, admission.decision as never);
    if (admission.blocked) return refused(admission, context, denied);
    const settle = settling(admission);
    try {
      await next();
    } catch (error) {
      // `app.onError` gets no value that is not an `Error`: the host answers with a 500.
      settle(500, error);
      throw error;
    }
    const { res } = context;
    const response = withFields(admission, res, "handler");
    if (response !== res) {
      // Assigning over a response merges its headers, whose older fields would win.
      context.res = undefined;
      context.res = response;
    }
    settle(context.res.status, context.error);
    return undefined;
  };
}

/** Workers stop work that is not registered; other hosts have no such context, and reading it throws. */
function background(context: Context, work: Promise<void>): void {
  try {
    context.executionCtx.waitUntil(work);
  } catch {
    // The work continues without it.
  }
}
