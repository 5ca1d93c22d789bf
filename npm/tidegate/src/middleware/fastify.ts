/**
 * A hook for Fastify 5, and a store for @fastify/rate-limit.
 *
 * @module
 */
import { PROBLEM_JSON } from "../http/problem.ts";
import type { Limiter } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { type Admission, type Decided, type Denial, gate, type Options } from "./gate.ts";
import { type NodeRequest, type NodeResponse, settleAfter } from "./node-response.ts";
import { passage } from "./passage.ts";

export { fastifyRateLimitStore } from "./drop-in/fastify-rate-limit.ts";
export type { Decided, Denial, GateOptions, Options } from "./gate.ts";

/** A request of Fastify, by shape. */
export interface FastifyRequest {
  readonly raw: NodeRequest;
}

/** A reply of Fastify, by shape. */
export interface FastifyReply {
  readonly raw: NodeResponse;
  getHeader(name: string): number | string | string[] | undefined;
  header(name: string, value: string): unknown;
  code(status: number): unknown;
  send(payload: unknown): unknown;
}

/** Settings of {@link rateLimit}. */
export type FastifyOptions<R, P, N extends string> = Options<R, N> & {
  /** The payload for a denied request in place of the problem+json; status and fields are set. */
  denied?: ((request: R, reply: P, denial: Denial) => unknown) | undefined;
};

/**
 * Limits requests as an `onRequest` hook (or a later one, such as `preHandler`, where the key comes from what earlier hooks
 * found), of an instance or of one route. The decision is in `request.rateLimit`; a denied request gets 429 with
 * `Retry-After` and a problem+json.
 *
 * ```ts
 * app.addHook("onRequest", rateLimit(limits, { name: "api" }));
 * app.get("/search", { onRequest: rateLimit(limits, { name: "search", cost: { query: "n", max: 100 } }) }, handler);
 * ```
 *
 * Throws an `InputError` at once where an option is wrong.
 */
export function rateLimit<R extends FastifyRequest, P extends FastifyReply, N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: FastifyOptions<R, P, NoInfer<N>>,
): (request: R, reply: P, done: (error?: Error) => void) => void {
  const { admit } = gate(limiter, options);
  const { denied } = options;
  const judge = (admission: Admission<R> | undefined, request: R, reply: P): boolean => {
    if (admission === undefined) return true;
    (request as R & { rateLimit?: Decided }).rateLimit = admission.decided;
    admission.tell({
      getHeader: (name) => reply.getHeader(name),
      setHeader: (name, value) => reply.header(name, value),
    });
    if (!admission.blocked) settleAfter(admission, reply.raw);
    else {
      const denial = admission.denial();
      reply.code(denial.status);
      if (denied === undefined) reply.header("Content-Type", PROBLEM_JSON);
      reply.send(denied === undefined ? JSON.stringify(denial.problem) : denied(request, reply, denial));
    }
    return !admission.blocked;
  };
  return (request, reply, done) => {
    passage(
      () => admit(request, request.raw),
      (admission) => judge(admission, request, reply),
      done,
      (error) => done(error as Error),
    );
  };
}
