/**
 * Middleware for Koa 2 and 3.
 *
 * @module
 */
import type { Context, Middleware } from "koa";
import type { Limiter } from "../limiter/limiter.ts";
import type { Incoming } from "./client-key.ts";
import { Gate } from "./gate.ts";
import { errorOf, limitExchange } from "./node-response.ts";
import { checkContext, type Denial, type Options, type RequestDecision } from "./options.ts";

export type { Denial, RequestDecision } from "./options.ts";

declare module "koa" {
  interface DefaultState {
    /** The decision of the last `rateLimit` that the request came through; absent before one, and if `skip` was true. */
    rateLimit: RequestDecision;
  }
}

/** Answers a denied request: sets the context's status and body. */
export type KoaDenied = (context: Context, denial: Denial) => unknown;

/** Settings of {@link rateLimit}: {@link Options}. */
export type KoaOptions<N extends string> = Options<Context, N, KoaDenied>;

/**
 * Limits requests. The decision is `ctx.state.rateLimit`; a denied request gets 429 with `Retry-After` and a problem+json,
 * and errors go to Koa. A middleware that is mounted twice decides once. If `app.proxy` is set, the client is `ctx.ip`.
 *
 * ```ts
 * app.use(rateLimit(limits, { name: "api" }));
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function rateLimit<N extends string>(limiter: Limiter<N>, options: KoaOptions<NoInfer<N>>): Middleware {
  const made = new Gate(limiter, options, "new Koa({ proxy: true, maxIpsCount: 1 })");
  const { denied } = options;
  return async (context, next) => {
    const { req, res } = context;
    checkContext("Koa", context, req?.headers);
    const { headers, socket, url } = req;
    const decide = async () =>
      limitExchange(made, {
        request: context,
        incoming: { headers, socket, url, ...trustOf(context) },
        once: req,
        response: res,
        attach: (decision) => {
          context.state.rateLimit = decision;
        },
        refuse: (denial) => {
          context.status = denial.status;
          if (denied !== undefined) return denied(context, denial);
          context.body = denial.body;
          context.set("Content-Type", denial.contentType);
          return undefined;
        },
      });
    const allowed = await decide().catch((thrown) => {
      throw errorOf(thrown);
    });
    if (allowed) await next();
  };
}

/** Koa takes the first address of the header, which its client may write, unless it knows how many proxies append one. */
function trustOf(context: Context): Pick<Incoming, "trusted" | "trustsAll"> {
  const { proxy, maxIpsCount, proxyIpHeader } = context.app;
  if (!proxy) return {};
  return { trusted: context.ip, trustsAll: !(maxIpsCount > 0) && /^x-forwarded-for$/i.test(proxyIpHeader) };
}
