/**
 * A limit in front of a request listener of `node:http`.
 *
 * @module
 */
import type { Limiter } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { type Admission, type Decided, type Denial, checkHandler, gate, type Options } from "./gate.ts";
import { type NodeRequest, type NodeResponse, refuse, settleAfter } from "./node-response.ts";
import { passage } from "./passage.ts";

export type { Decided, Denial, GateOptions, Options } from "./gate.ts";

/** Settings of {@link rateLimit}. */
export type NodeOptions<R, N extends string> = Options<R, N> & {
  /** Answers a denied request in place of the problem+json; the fields are set, the status is yours to set. */
  denied?: ((request: R, response: NodeResponse, denial: Denial) => void) | undefined;
};

/**
 * A listener that asks the limiter first. The decision is in `request.rateLimit`; a denied request gets 429 with
 * `Retry-After` and a problem+json. Where a function of yours throws, the request gets 500 and `onError` is told.
 *
 * ```ts
 * createServer(rateLimit(limits, { name: "api" }, (request, response) => response.end("hello"))).listen(3000);
 * ```
 *
 * Throws an `InputError` at once where an option is wrong.
 */
export function rateLimit<R extends NodeRequest, W extends NodeResponse, N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: NodeOptions<R, NoInfer<N>>,
  listener: (request: R, response: W) => unknown,
): (request: R, response: W) => void {
  const { admit, report } = gate(limiter, options);
  checkHandler("listener", listener);
  const { denied } = options;
  return (request, response) => {
    // An exception out of a listener would end the process.
    const fail = (error: unknown): void => {
      report(error);
      response.statusCode = 500;
      response.end();
    };
    const judge = (admission: Admission<R> | undefined): boolean => {
      if (admission === undefined) return true;
      (request as R & { rateLimit?: Decided }).rateLimit = admission.decided;
      admission.tell(response);
      if (!admission.blocked) settleAfter(admission, response);
      else if (denied === undefined) refuse(admission.denial(), response);
      else denied(request, response, admission.denial());
      return !admission.blocked;
    };
    passage(
      () => admit(request, request),
      judge,
      () => void listener(request, response),
      fail,
    );
  };
}
