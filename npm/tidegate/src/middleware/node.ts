/**
 * A limit in front of a request listener of `node:http`, `node:https` or `node:http2`; and as middleware of Connect, Polka,
 * Restify and others that take `(request, response, next)`.
 *
 * @module
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Limiter } from "../limiter/limiter.ts";
import { Gate } from "./gate.ts";
import { answer, goOn, limitExchange } from "./node-response.ts";
import { checkContext, checkHandler, type Denial, type Options, type RequestDecision } from "./options.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";

export type { Denial, RequestDecision } from "./options.ts";

type AnyRequest = IncomingMessage | Http2ServerRequest;
type AnyResponse = ServerResponse | Http2ServerResponse;

/** Answers a denied request. */
export type NodeDenied<R extends AnyRequest = IncomingMessage, W extends AnyResponse = ServerResponse> = (
  request: R,
  response: W,
  denial: Denial,
) => unknown;

/** Settings of {@link rateLimit}: {@link Options}. */
export type NodeOptions<
  N extends string,
  R extends AnyRequest = IncomingMessage,
  W extends AnyResponse = ServerResponse,
> = Options<R, N, NodeDenied<R, W>>;

/** A request with its decision, which is absent if `skip` was true. */
export type LimitedRequest<R extends AnyRequest = IncomingMessage> = R & { rateLimit: RequestDecision };

/**
 * A listener that calls the limiter first. The decision is `request.rateLimit`; a denied request gets 429 with
 * `Retry-After` and a problem+json. If a function in the options throws or rejects, the request gets 500 and the error
 * goes to `onError`. It returns what the listener returns: Micro sends it, and `captureRejections` of Node.js reads it.
 *
 * ```ts
 * createServer(rateLimit(limits, { name: "api" }, (request, response) => response.end("hello"))).listen(3000);
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function rateLimit<
  N extends string,
  R extends AnyRequest = IncomingMessage,
  W extends AnyResponse = ServerResponse,
>(
  limiter: Limiter<N>,
  options: NodeOptions<NoInfer<N>, R, W>,
  listener: (request: LimitedRequest<R>, response: W) => unknown,
): (request: R, response: W) => void {
  const made = new Gate(limiter, options);
  checkHandler("listener", listener);
  return (request, response) => {
    checkContext("node:http", response, response.setHeader);
    const fail = (error: unknown): void => {
      void made.report(error);
      if (!response.headersSent) response.statusCode = 500;
      response.end();
    };
    const allowed = () => decide(made, options.denied, request, response, undefined);
    return goOn(allowed, () => listener(request as LimitedRequest<R>, response), fail);
  };
}

/**
 * The same as a middleware of Connect, Polka, Restify and Vite's server, whose requests and responses are those of
 * `node:http`. Errors go to `next`. A middleware that is mounted twice on a route decides once.
 *
 * ```ts
 * polka().use(rateLimitMiddleware(limits, { name: "api" }));
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function rateLimitMiddleware<
  N extends string,
  R extends AnyRequest = IncomingMessage,
  W extends AnyResponse = ServerResponse,
>(
  limiter: Limiter<N>,
  options: NodeOptions<NoInfer<N>, R, W>,
): (request: R, response: W, next: (error?: Error) => void) => void {
  const made = new Gate(limiter, options);
  return (request, response, next) => {
    let closed: Promise<void> | undefined;
    const allowed = () => {
      checkContext("Connect", response, response.setHeader);
      return follow(decide(made, options.denied, request, response, request), (goesOn) => {
        if (goesOn) return true;
        if (isOfRestify(request)) (next as (end: unknown) => void)(false);
        else if (response.writableFinished) closed = Promise.resolve();
        return false;
      });
    };
    goOn(allowed, next, next as (error: unknown) => void);
    // h3 1 waits for a promise, or else for "close", which the responses to Nuxt's own requests emit within `end`.
    return closed;
  };
}

/**
 * Restify counts a request as in flight, and emits no `after`, until `next(false)`. In other frameworks that continues: a
 * request in a process that has loaded Restify has its methods too, but `timers` only if its server has received it.
 */
const isOfRestify = (request: object): boolean => "startHandlerTimer" in request && "timers" in request;

const decide = <R extends AnyRequest, W extends AnyResponse>(
  made: Gate<R>,
  denied: NodeDenied<R, W> | undefined,
  request: R,
  response: W,
  once: object | undefined,
): MaybePromise<boolean> =>
  limitExchange(made, {
    request,
    incoming: request,
    once,
    response,
    attach: (decision) => {
      (request as LimitedRequest<R>).rateLimit = decision;
    },
    refuse: (denial) => (denied === undefined ? answer(denial, response) : denied(request, response, denial)),
  });
