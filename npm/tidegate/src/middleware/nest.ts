/**
 * A guard for NestJS, on Express and on Fastify; and a storage for @nestjs/throttler.
 *
 * @module
 */
import { InputError } from "../limit/errors.ts";
import { PROBLEM_JSON } from "../http/problem.ts";
import type { Limiter } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { type Admission, type Decided, type Denial, gate, type Options } from "./gate.ts";
import { type NodeRequest, type NodeResponse, settleAfter } from "./node-response.ts";
import { follow } from "./pending.ts";

export { throttlerStorage } from "./drop-in/throttler.ts";
export type { Decided, Denial, GateOptions, Options } from "./gate.ts";

/** What a guard is given, by shape. */
export interface NestContext {
  switchToHttp(): { getRequest<T>(): T; getResponse<T>(): T };
}

interface Target extends NodeResponse {
  /** Fastify: the response below, and how a header is set. */
  readonly raw?: NodeResponse;
  header?(name: string, value: string): unknown;
}

/** Nest's `HttpException`, by shape. */
export type HttpExceptionClass = new (body: Record<string, unknown>, status: number) => Error;

/** Settings of {@link rateLimitGuard}. */
export type NestOptions<R, N extends string> = Options<R, N> & {
  /** The exception for a denied request in place of the problem+json; the fields are set. */
  denied?: ((denial: Denial, request: R) => Error) | undefined;
};

/**
 * A guard, for `@UseGuards` or `app.useGlobalGuards`. Nest's `HttpException` comes from you, since only errors of that class
 * are answered without a line in the log. The decision is in `request.rateLimit`; a denied request gets 429 with
 * `Retry-After` and a problem+json.
 *
 * ```ts
 * import { HttpException } from "@nestjs/common";
 * @UseGuards(rateLimitGuard(limits, { name: "api" }, HttpException))
 * ```
 *
 * Throws an `InputError` at once where an option is wrong.
 */
export function rateLimitGuard<R extends object, N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: NestOptions<R, NoInfer<N>>,
  HttpException: HttpExceptionClass,
): { canActivate(context: NestContext): boolean | Promise<boolean> } {
  const { admit } = gate(limiter, options);
  const { denied } = options;
  if (typeof HttpException !== "function") {
    throw new InputError("HttpException", "the class of that name from @nestjs/common", HttpException);
  }
  return {
    canActivate(context) {
      const http = context.switchToHttp();
      const request = http.getRequest<R & { raw?: NodeRequest; rateLimit?: Decided }>();
      const decide = (admission: Admission<R> | undefined): boolean => {
        if (admission === undefined) return true;
        const response = http.getResponse<Target>();
        request.rateLimit = admission.decided;
        const set = (name: string, value: string): unknown =>
          typeof response.setHeader === "function" ? response.setHeader(name, value) : response.header?.(name, value);
        admission.tell({ getHeader: (name) => response.getHeader(name), setHeader: set });
        if (!admission.blocked) {
          settleAfter(admission, response.raw ?? response);
          return true;
        }
        const denial = admission.denial();
        if (denied !== undefined) throw denied(denial, request);
        set("Content-Type", PROBLEM_JSON);
        throw new HttpException({ ...denial.problem }, denial.status);
      };
      return follow(admit(request, request.raw ?? (request as NodeRequest)), decide) as boolean | Promise<boolean>;
    },
  };
}
