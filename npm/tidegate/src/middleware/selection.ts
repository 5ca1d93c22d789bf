import type { LimitRequest } from "../limiter/limiter.ts";
import type { Incoming } from "./client.ts";
import type { Pending } from "./pending.ts";

/**
 * Selects the limits of a request, such as the policies of `tidegate/policies`. They are taken all or nothing; without one
 * the request is not limited.
 */
export interface Selection<R> {
  /** `address` is the client's, by the middleware's `client` option. */
  select(
    request: R,
    incoming: Incoming,
    address: (incoming: Incoming) => string,
  ): Pending<readonly LimitRequest<string>[]>;
}

/** Whether it is one, and not an array or a function of rules. */
export const isSelection = <R>(limits: unknown): limits is Selection<R> =>
  typeof limits === "object" && limits !== null && typeof (limits as Partial<Selection<R>>).select === "function";
