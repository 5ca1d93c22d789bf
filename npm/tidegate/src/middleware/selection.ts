/** The part of policies that a middleware uses. */
import { InputError } from "../limit/errors.ts";
import type { LimitRequest } from "../limiter/options.ts";
import type { Incoming } from "./client-key.ts";
import type { MaybePromise } from "../limit/maybe-promise.ts";

/**
 * Selects the limits of a request, such as the policies of `tidegate/policies`. They are taken all or nothing; without one
 * the request is not limited.
 */
export interface Selection<R> {
  /** The limiter that enforces the selected limits, if only one does. */
  readonly limiter?: object | undefined;
  /**
   * `address` is the client's, by the middleware's `client` option. `shadow`: the middleware denies nothing, so no denial may
   * count towards a block.
   */
  select(
    request: R,
    incoming: Incoming,
    address: (incoming: Incoming) => string,
    shadow?: boolean,
  ): MaybePromise<readonly LimitRequest<string>[]>;
  /** Whether the limiter itself blocks keys that are denied repeatedly on this limit. */
  blocks?(request: LimitRequest<string>): boolean;
}

/**
 * Throws if this is another limiter, which would ignore how the selected limits are enforced. An observed one inherits
 * from it.
 */
export function checkSelection(selection: Selection<never>, limiter: object): void {
  const { limiter: own } = selection;
  if (own === undefined || own === limiter || Object.prototype.isPrototypeOf.call(own, limiter)) return;
  throw new InputError("limiter", "the `limiter` of the policies in `limits`, such as policies.limiter", limiter);
}

/** Whether it is one, and not an array or a function of rules. */
export const isSelection = <R>(limits: unknown): limits is Selection<R> =>
  typeof limits === "object" && limits !== null && typeof (limits as Partial<Selection<R>>).select === "function";
