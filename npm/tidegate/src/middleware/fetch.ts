/**
 * A limit in front of a handler that takes a `Request` and returns a `Response`: Workers, Deno, Bun, SvelteKit.
 *
 * @module
 */
import type { Limiter } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { refusal, settlement, statusOfThrown, withFields } from "./fetch-response.ts";
import { gate } from "./gate.ts";
import { checkHandler, type Denial, type Options, type RequestDecision } from "./options.ts";
import { peerAddress } from "./peer.ts";
import type { Pending } from "./pending.ts";

export { rateLimitBinding } from "./drop-in/binding.ts";
export type { Denial, RequestDecision } from "./options.ts";

/** Returns the response to a denied request; the fields are added to it. */
export type FetchDenied<R> = (request: R, denial: Denial) => Pending<Response>;

/** Settings of {@link rateLimit}. */
export type FetchOptions<R, N extends string> = Options<R, N, FetchDenied<R>>;

const decisions = new WeakMap<object, RequestDecision>();

/** The decision on a request; `undefined` where it was not limited. */
export const decisionOf = (request: object): RequestDecision | undefined => decisions.get(request);

/**
 * A handler that calls the limiter first. It takes and passes on what the host passes beside the request. Deno and Bun
 * report the client's address there; on Workers use `client: { header: "cf-connecting-ip" }`, or a `key`. A denied request
 * gets 429 with `Retry-After` and a problem+json.
 *
 * ```ts
 * Deno.serve(rateLimit(limits, { name: "api" }, (request) => new Response("hello")));
 * ```
 *
 * Throws an `InputError` where an option is wrong; the handler rejects where a function in the options throws or rejects.
 */
export function rateLimit<N extends string, S extends Store, R extends Request = Request, A extends unknown[] = []>(
  limiter: Limiter<N, S>,
  options: FetchOptions<R, NoInfer<N>>,
  handler: (request: R, ...beside: A) => Pending<Response>,
): (request: R, ...beside: A) => Promise<Response> {
  const made = gate(limiter, options);
  checkHandler("handler", handler);
  const { denied } = options;
  return async (request, ...beside) => {
    const address = peerAddress(request, beside[0]);
    // Workers pass it second, after the environment; a proxy of Next.js first.
    const context = beside.find(waits);
    const settling = settlement(made, request, (work) => context?.waitUntil(work));
    const admission = await made.admit(request, { address, headers: request.headers, url: request.url });
    if (admission === undefined) return handler(request, ...beside);
    decisions.set(request, admission.decision);
    if (admission.blocked) {
      const denial = await admission.denial();
      return withFields(admission, denied === undefined ? refusal(denial) : await denied(request, denial));
    }
    const settle = settling(admission);
    try {
      const response = withFields(admission, await handler(request, ...beside));
      settle(response.status);
      return response;
    } catch (error) {
      settle(statusOfThrown(error), error);
      throw error;
    }
  };
}

const waits = (found: unknown): found is { waitUntil(work: Promise<void>): void } =>
  typeof (found as { waitUntil?: unknown } | null | undefined)?.waitUntil === "function";
