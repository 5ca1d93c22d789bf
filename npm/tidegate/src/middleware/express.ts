/**
 * Middleware for Express 4 and 5, and whatever else calls `(request, response, next)`; and a store for express-rate-limit.
 *
 * @module
 */
import type { Limiter } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { type Admission, type Decided, type Denial, gate, type Options } from "./gate.ts";
import { type NodeRequest, type NodeResponse, refuse, settleAfter } from "./node-response.ts";
import { passage } from "./passage.ts";

export { expressRateLimitStore } from "./drop-in/hits.ts";
export type { Decided, Denial, GateOptions, Options } from "./gate.ts";

type Next = (error?: unknown) => void;

/** Settings of {@link rateLimit}. */
export type ExpressOptions<R, N extends string> = Options<R, N> & {
  /** Answers a denied request in place of the problem+json; the fields are set, the status is yours to set. */
  denied?: ((request: R, response: NodeResponse, next: Next, denial: Denial) => void) | undefined;
};

/**
 * Limits the requests that come past it. The decision is in `request.rateLimit`; a denied request gets 429 with
 * `Retry-After` and a problem+json, and what goes wrong goes to `next`.
 *
 * ```ts
 * app.use(rateLimit(limits, { name: "api" })); // by the client's address
 * app.use("/chat", rateLimit(limits, { name: "tokens", key: (req) => req.user.id, cost: 100 }));
 * ```
 *
 * Throws an `InputError` at once where an option is wrong.
 */
export function rateLimit<R extends NodeRequest, N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: ExpressOptions<R, NoInfer<N>>,
): (request: R, response: NodeResponse, next: Next) => void {
  const { admit } = gate(limiter, options);
  const { denied } = options;
  const judge = (admission: Admission<R> | undefined, request: R, response: NodeResponse, next: Next): boolean => {
    if (admission === undefined) return true;
    (request as R & { rateLimit?: Decided }).rateLimit = admission.decided;
    admission.tell(response);
    if (!admission.blocked) settleAfter(admission, response);
    else if (denied === undefined) refuse(admission.denial(), response);
    else denied(request, response, next, admission.denial());
    return !admission.blocked;
  };
  return (request, response, next) => {
    passage(
      () => admit(request, request),
      (admission) => judge(admission, request, response, next),
      next,
      next,
    );
  };
}
