/** What the middleware of frameworks on `Request` and `Response` share: fetch handlers, Hono and Next.js. */
import { isError } from "../limit/realms.ts";
import { InputError } from "../limit/errors.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { type Admission, Gate } from "./gate.ts";
import { ending, type NodeResponse } from "./node-response.ts";
import { checkHandler, type Denial, type Options, type RequestDecision } from "./options.ts";
import { outgoingOf, peerOf } from "./fetch-peer.ts";
import type { MaybePromise } from "../limit/maybe-promise.ts";
import { privateField } from "./private-field.ts";

/**
 * What is read of a request: of a `Request`, or of one that is not all of it by its type. That of Azure Functions has no
 * signal, and of Payload's only the headers are certain.
 */
export interface FetchRequest {
  readonly url?: string | undefined;
  readonly headers: Pick<Headers, "get">;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Settles once: at the handler's end, or when the client leaves before, even if it left before the decision. If the
 * host's own response is known (`outgoing`), at its end, which for a stream is later. Call it before the decision:
 * @hono/node-server 1 aborts only a signal that has been read. `keep` lets hosts wait that otherwise stop work after the
 * response (Workers).
 */
export function settlement<R>(
  gate: Gate<R>,
  request: FetchRequest,
  keep: (work: Promise<void>) => void,
  outgoing?: NodeResponse,
): (admission: Admission<R>) => (status: number, error?: unknown) => void {
  if (gate.options.settle === undefined) return () => () => {};
  const { signal, headers } = request;
  const ended = outgoing === undefined ? undefined : ending(outgoing);
  // Bun and Deno abort the signal of a request that becomes a WebSocket.
  const leaves = headers.get("upgrade")?.toLowerCase() !== "websocket";
  return (admission) => {
    let done = false;
    let isAnswered = false;
    const settle = (status: number, aborted: boolean, error?: unknown): void => {
      if (done) return;
      done = true;
      signal?.removeEventListener("abort", left);
      keep(admission.settle({ status, aborted, error }));
    };
    const left = (): void => settle(499, true);
    if (leaves) {
      if (signal?.aborted) left();
      else signal?.addEventListener("abort", left);
      // @hono/node-server does not abort the signal of a request behind another of its connection.
      ended?.(({ aborted }) => (aborted && !isAnswered ? left() : undefined));
    }
    return (status, error) => {
      isAnswered = true;
      if (ended === undefined) return settle(status, false, error);
      signal?.removeEventListener("abort", left);
      return ended(({ aborted }) => settle(status, aborted, error));
    };
  };
}

/**
 * The response to a denied request. Its headers are a `Headers` from the start: @hono/node-server 1 answers HEAD with a copy
 * that has the object which the response was made with, and no field that was set later.
 */
const refusal = ({ body, status, contentType }: Denial): Response =>
  new Response(body, { status, headers: new Headers({ "Content-Type": contentType }) });

/** The same, or that of the option `denied`, with the fields. */
export async function refused<R>(
  admission: Admission<R>,
  request: R,
  denied: FetchDenied<R> | undefined,
): Promise<Response> {
  const denial = await admission.denial();
  return withFields(admission, denied === undefined ? refusal(denial) : await denied(request, denial), "denied");
}

/**
 * The response with the fields; a copy if its headers are immutable: those of a response from `fetch` throw a
 * `TypeError`, those that h3 2 gives to JSON an `Error`. No response but a host's own is a WebSocket's (101) or a network
 * error (0): it stays as it is if no field can be set.
 */
export function withFields<R>(admission: Admission<R>, response: Response, from: "handler" | "denied"): Response {
  if (typeof (response as Partial<Response> | null | undefined)?.headers?.get !== "function") {
    throw new InputError(from, "a function that returns a Response", response);
  }
  try {
    admission.setFields(response.headers);
    return response;
  } catch {
    if (response.status < 200) return response;
    const { body, status, statusText, headers } = response;
    // Not from the response itself: @hono/node-server's Response would take over its headers.
    const copy = new Response(body, { status, statusText, headers: new Headers(headers) });
    admission.setFields(copy.headers);
    return copy;
  }
}

/**
 * The status of what a handler threw. Next.js throws redirects and not-found pages with a digest, React Router and TanStack
 * Start responses, React Router also `data()` with a response's `init`, SvelteKit objects with a status, h3 2 an
 * `HTTPError`, h3 1 (Nuxt 4) an error whose class is marked. Any other `Error` with a status may be of a call to another
 * server.
 */
export function statusOfThrown(error: unknown): number {
  const thrown = Object(error) as Partial<Record<string, unknown>>;
  const { digest, init, status = Object(init).status as unknown, statusCode, name, constructor: made } = thrown;
  if (typeof status === "number" && (name === "HTTPError" || !isError(error))) return status;
  if (typeof statusCode === "number" && Object(made).__h3_error__ === true) return statusCode;
  if (typeof digest !== "string") return 500;
  if (digest.startsWith("NEXT_REDIRECT")) return 303;
  return Number(/^NEXT_HTTP_ERROR_FALLBACK;(\d{3})/.exec(digest)?.[1] ?? 500);
}

/** Returns the response to a denied request; the fields are added to it. */
export type FetchDenied<R> = (request: R, denial: Denial) => MaybePromise<Response>;

/** Settings of {@link rateLimit}: {@link Options}. */
export type FetchOptions<R, N extends string> = Options<R, N, FetchDenied<R>>;

const decisions = privateField<RequestDecision>();

/** The decision on a request; `undefined` if it was not limited. */
export const decisionOf = (request: object): RequestDecision | undefined => decisions.get(Object(request) as object);

/**
 * A handler that calls the limiter first. It takes and passes on what the host passes beside the request. Deno and Bun
 * report the client's address there; on Workers use `client: { header: "cf-connecting-ip" }`, or a `key`. A denied request
 * gets 429 with `Retry-After` and a problem+json. On Bun a handler that upgraded the request returns `undefined`.
 *
 * ```ts
 * Deno.serve(rateLimit(limits, { name: "api" }, (request) => new Response("hello")));
 * ```
 *
 * Throws an `InputError` if an option is wrong; the handler rejects if a function in the options throws or rejects.
 */
export function limitHandler<
  N extends string,
  R extends FetchRequest = Request,
  A extends unknown[] = [],
  T extends Response | undefined = Response,
>(
  limiter: Limiter<N>,
  options: FetchOptions<R, NoInfer<N>>,
  handler: (request: R, ...rest: A) => MaybePromise<T>,
): (request: R, ...rest: A) => Promise<T | Response> {
  const made = new Gate(limiter, options);
  checkHandler("handler", handler);
  const { denied } = options;
  return async (request, ...rest) => {
    checkRequest(request);
    const { headers, url } = request;
    const incoming = Object.assign(peerOf(request, rest[0]), { headers, url });
    // Workers pass it second, after the environment; a proxy of Next.js first.
    const context = rest.find(waits);
    const settling = settlement(made, request, (work) => context?.waitUntil(work), outgoingOf(rest[0]));
    const admission = await made.admit(request, incoming);
    if (admission === undefined) return handler(request, ...rest);
    decisions.set(request, admission.decision);
    if (admission.blocked) return refused(admission, request, denied);
    const settle = settling(admission);
    try {
      const answered = await handler(request, ...rest);
      const response = answered === undefined ? answered : withFields(admission, answered, "handler");
      settle(response?.status ?? 101); // Bun: a request that became a WebSocket has no response
      return response;
    } catch (error) {
      settle(statusOfThrown(error), error);
      throw error;
    }
  };
}

/**
 * Throws if a framework passes something else. The response to a request of `node:http` would be dropped, and its client
 * would wait forever.
 */
function checkRequest(request: FetchRequest): void {
  if (typeof (request as Partial<FetchRequest> | undefined)?.headers?.get === "function") return;
  const event = "if the host passes an event, pass on its request and the event";
  const rule = `a Request: ${event}; for (request, response) use tidegate/node or tidegate/express`;
  throw new InputError("request", rule, request);
}

const waits = (found: unknown): found is { waitUntil(work: Promise<void>): void } =>
  typeof (found as { waitUntil?: unknown } | null | undefined)?.waitUntil === "function";
