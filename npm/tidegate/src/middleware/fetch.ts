/**
 * A limit in front of a handler that takes a `Request` and returns a `Response`: Workers, Deno, Bun, Next.js routes.
 *
 * @module
 */
import { PROBLEM_JSON } from "../http/problem.ts";
import type { Limiter } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { type Admission, type Decided, type Denial, checkHandler, gate, type Options } from "./gate.ts";
import { settleAtEnd } from "./ending.ts";
import { peerAddress } from "./peer.ts";

export { rateLimitBinding } from "./drop-in/binding.ts";
export type { Decided, Denial, GateOptions, Options } from "./gate.ts";

/** Settings of {@link rateLimit}. */
export type FetchOptions<R, N extends string> = Options<R, N> & {
  /** The response to a denied request in place of the problem+json; the fields are added to it. */
  denied?: ((request: R, denial: Denial) => Response | Promise<Response>) | undefined;
};

const decisions = new WeakMap<object, Decided>();

/** What a limited request was told; `undefined` where it was not limited. */
export const decisionOf = (request: object): Decided | undefined => decisions.get(request);

/**
 * A handler that asks the limiter first; it takes and passes on whatever the host gives beside the request. Deno and Bun
 * tell the client's address there; on Workers say `client: { header: "cf-connecting-ip" }`, or give a `key`. A denied
 * request gets 429 with `Retry-After` and a problem+json.
 *
 * ```ts
 * Deno.serve(rateLimit(limits, { name: "api" }, (request) => new Response("hello")));
 * export const GET = rateLimit(limits, { name: "api", key: (request) => userOf(request) }, handler); // Next.js
 * ```
 *
 * Throws an `InputError` at once where an option is wrong; the handler rejects where a function of yours throws.
 */
export function rateLimit<R extends Request, A extends unknown[], N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: FetchOptions<R, NoInfer<N>>,
  handler: (request: R, ...beside: A) => Response | Promise<Response>,
): (request: R, ...beside: A) => Promise<Response> {
  const { admit } = gate(limiter, options);
  checkHandler("handler", handler);
  const { denied = refuse } = options;
  return async (request, ...beside) => {
    const address = peerAddress(request, beside[0]);
    const admission = await admit(request, { address, headers: request.headers, url: request.url });
    if (admission === undefined) return handler(request, ...beside);
    decisions.set(request, admission.decided);
    if (admission.blocked) return told(admission, await denied(request, admission.denial()));
    const context = beside[1] as { waitUntil?: (work: Promise<void>) => void } | undefined;
    const settle = settleAtEnd(admission, request.signal, (work) => context?.waitUntil?.(work));
    try {
      const response = told(admission, await handler(request, ...beside));
      settle(response.status);
      return response;
    } catch (error) {
      settle(500, error);
      throw error;
    }
  };
}

const refuse = (_: Request, { problem, status }: Denial): Response =>
  new Response(JSON.stringify(problem), { status, headers: { "Content-Type": PROBLEM_JSON } });

/** The response with the fields; a copy where its own cannot be written, as of one that came from `fetch`. */
function told<R>(admission: Admission<R>, response: Response): Response {
  try {
    admission.tell(response.headers);
    return response;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const copy = new Response(response.body, response);
    admission.tell(copy.headers);
    return copy;
  }
}
