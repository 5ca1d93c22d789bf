/**
 * Middleware for Express 4 and 5; and a store for express-rate-limit.
 *
 * @module
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { NextFunction, Request, Response } from "express";
import type { Limiter } from "../limiter/limiter.ts";
import type { Incoming } from "./client-key.ts";
import { Gate } from "./gate.ts";
import { answer, goOn, limitExchange } from "./node-response.ts";
import { checkContext, type Denial, type Options, type RequestDecision } from "./options.ts";

export { expressRateLimitStore, type HitStore, type LocalHitStore } from "./drop-in/hits.ts";
export type { HitOptions } from "./drop-in/options.ts";
export type { Denial, RequestDecision } from "./options.ts";

declare global {
  namespace Express {
    interface Request {
      /** The decision of the last `rateLimit` that the request came through; absent before one, and if `skip` was true. */
      rateLimit: RequestDecision;
    }
  }
}

/** Answers a denied request. */
export type ExpressDenied = (request: Request, response: Response, next: NextFunction, denial: Denial) => unknown;

/**
 * A middleware that leaves a route's types of parameters, body and query as they are. Its types are of `node:http`: in a monorepo
 * with Express 4 and 5 this package finds one of them, and the other's requests are no requests of it.
 */
export type ExpressMiddleware = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Settings of {@link rateLimit}: {@link Options}. */
export type ExpressOptions<N extends string> = Options<Request, N, ExpressDenied>;

/**
 * Limits requests. The decision is `req.rateLimit`; a denied request gets 429 with `Retry-After` and a problem+json, and
 * errors go to `next`. A middleware that is mounted twice on a route decides once. If the application sets
 * `trust proxy`, the client is `req.ip`.
 *
 * ```ts
 * app.use(rateLimit(limits, { name: "api" })); // by the client's address
 * app.use("/chat", rateLimit(limits, { name: "tokens", key: (req) => userOf(req), count: 100 }));
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function rateLimit<N extends string>(
  limiter: Limiter<N>,
  options: ExpressOptions<NoInfer<N>>,
): ExpressMiddleware {
  const made = new Gate(limiter, options, 'app.set("trust proxy", 1)');
  const { denied } = options;
  const middleware = (request: Request, response: Response, next: NextFunction): void => {
    const decide = () => {
      checkContext("Express", response, response.setHeader);
      return limitExchange(made, {
        request,
        incoming: incomingOf(request),
        once: request,
        response,
        attach: (decision) => {
          request.rateLimit = decision;
        },
        refuse: (denial) => (denied === undefined ? answer(denial, response) : denied(request, response, next, denial)),
      });
    };
    goOn(decide, next, next);
  };
  return middleware as ExpressMiddleware;
}

/** What is read of a request of Express: with `trust proxy` the address that Express found. */
function incomingOf(request: Request): Incoming {
  const { socket, headers, url } = request;
  const trust: unknown = request.app?.get?.("trust proxy");
  const trusted = trust === undefined || trust === false || trust === 0 ? undefined : request.ip;
  return { socket, headers, url, trusted, trustsAll: trust === true };
}
