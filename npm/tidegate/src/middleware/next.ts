/**
 * Limits for Next.js: route handlers, the proxy (`middleware.ts` before Next.js 16), and server actions.
 *
 * @module
 */
import { InputError } from "../limit/errors.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { type FetchOptions, limitHandler, statusOfThrown } from "./fetch-response.ts";
import { Gate } from "./gate.ts";
import { checkHandler, optionsOf, type Denial, type Options, type Outcome } from "./options.ts";
import type { MaybePromise } from "../limit/maybe-promise.ts";
import type { Problem } from "../http/problem.ts";
import type { Rule } from "./rule.ts";

export { decisionOf } from "./fetch-response.ts";
export type { Denial, RequestDecision } from "./options.ts";

/** As Next.js types it. */
// biome-ignore lint/suspicious/noConfusingVoidType: of a proxy that returns nothing
type ProxyResult = Response | null | undefined | void;

/**
 * A route handler, or a proxy, that calls the limiter first. Next.js does not report the client's address: state the
 * header it is in, such as `client: { trust: 1 }` behind one proxy, or give a `key`. A denied request gets 429 with
 * `Retry-After` and a problem+json.
 *
 * ```ts
 * export const GET = rateLimit(limits, { name: "api", client: { trust: 1 } }, () => Response.json({ hello: true }));
 * export const proxy = rateLimit(limits, { name: "all", client: { trust: 1 } }, () => NextResponse.next());
 * ```
 *
 * A proxy that returns no response lets the request continue.
 *
 * Throws an `InputError` if an option is wrong, or neither `client` nor `key` is given.
 */
export function rateLimit<
  N extends string,
  R extends Request = Request,
  A extends unknown[] = [],
  T extends ProxyResult = Response,
>(
  limiter: Limiter<N>,
  options: FetchOptions<R, NoInfer<N>>,
  handler: (request: R, ...rest: A) => MaybePromise<T>,
): (request: R, ...rest: A) => Promise<T | Response> {
  checkAddressable(options);
  checkHandler("handler", handler);
  const limited = async (request: R, ...rest: A) =>
    ((await handler(request, ...rest)) as Response | null | undefined) ?? undefined;
  return limitHandler(limiter, options, limited) as (request: R, ...rest: A) => Promise<T | Response>;
}

/** A call of a server action, for the functions in the options. */
export interface ActionCall<A extends unknown[]> {
  /** The action's arguments. */
  readonly args: A;
  /** The request's headers; empty if `requestHeaders` is not given. */
  readonly headers: { get(name: string): string | null };
}

/** What a denied action returns by default. */
export interface ActionRefusal {
  readonly rateLimited: Problem;
}

/** Settings of {@link rateLimitAction}: {@link Options}. */
export type ActionOptions<A extends unknown[], N extends string, D> = Options<
  ActionCall<A>,
  N,
  (call: ActionCall<A>, denial: Denial) => MaybePromise<D>
> & {
  /** `headers` of `next/headers`; required for `client`. */
  requestHeaders?: (() => MaybePromise<{ get(name: string): string | null }>) | undefined;
};

/**
 * A server action that calls the limiter first. A denied call returns `{ rateLimited: problem }`, or what `denied` returns:
 * an error that it throws reaches the browser without its message in production.
 *
 * ```ts
 * "use server";
 * export const subscribe = rateLimitAction(
 *   limits,
 *   { name: "subscribe", client: { trust: 1 }, requestHeaders: headers },
 *   async (email: string) => save(email),
 * );
 * ```
 *
 * Throws an `InputError` if an option is wrong, or neither `client` nor `key` is given.
 */
export function rateLimitAction<N extends string, A extends unknown[], T, D = ActionRefusal>(
  limiter: Limiter<N>,
  options: ActionOptions<A, NoInfer<N>, D>,
  action: (...args: A) => Promise<T>,
): (...args: A) => Promise<T | D> {
  const { requestHeaders, ...given } = optionsOf(options);
  checkAddressable(given);
  checkHandler("action", action);
  if (requestHeaders !== undefined && typeof requestHeaders !== "function")
    throw new InputError("requestHeaders", "the function headers of next/headers", requestHeaders);
  if (given.client !== undefined && requestHeaders === undefined)
    throw new InputError("requestHeaders", "given with `client`: the function headers of next/headers", undefined);
  const made = new Gate(limiter, given);
  const { denied } = given;
  return async (...args) => {
    const headers = (await requestHeaders?.()) ?? new Headers();
    const call: ActionCall<A> = { args, headers };
    const admission = await made.admit(call, { headers });
    if (admission === undefined) return action(...args);
    if (admission.blocked) {
      const denial = await admission.denial();
      return denied === undefined ? ({ rateLimited: denial.problem } as D) : denied(call, denial);
    }
    const end = (outcome: Pick<Outcome<ActionCall<A>>, "status" | "error" | "result">): void =>
      void admission.settle({ aborted: false, ...outcome });
    try {
      const result = await action(...args);
      end({ status: 200, result });
      return result;
    } catch (error) {
      end({ status: statusOfThrown(error), error });
      throw error;
    }
  };
}

/** Throws if a limit would need the client's address and no header is named that has it. */
function checkAddressable<R, N extends string, D>(options: Options<R, N, D>): void {
  const { client, limits } = optionsOf(options);
  if (client?.trust !== undefined || client?.header !== undefined) return;
  const rules: readonly Rule<R, N>[] = limits === undefined ? [options] : Array.isArray(limits) ? limits : [];
  if (rules.every((rule) => rule?.key !== undefined)) return;
  const rule = "{ trust: 1 } behind one proxy, or { header: … }; or give a `key`: Next.js reports no address";
  throw new InputError("client", rule, client);
}
