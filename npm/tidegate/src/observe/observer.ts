/** A limiter that reports each of its decisions. */
import { hasMethods } from "../limit/checks.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";
import { InputError } from "../limit/errors.ts";
import { ignoreRejection } from "../limit/notify.ts";
import { grantedOrThrow, type Limiter } from "../limiter/limiter.ts";
import { checkLimiter, OBSERVED, unobserved } from "../limiter/check-limiter.ts";
import type { LimitOptions, LimitRequest } from "../limiter/options.ts";

/** One decision on one limit. */
export interface DecisionEvent {
  /** The limiter's method. */
  readonly operation: "limit" | "check" | "give" | "charge" | "block" | "limitAll" | "checkAll" | "limitMany";
  /** The limit's name. */
  readonly name: string;
  /** The limit's key. Too many values for a metric's label: one per client. */
  readonly key: string | undefined;
  /** Requested tokens; 0 for `block`. */
  readonly count: number;
  readonly decision: Decision;
  /** The decision on all limits, for `limitAll` and `checkAll`. */
  readonly all?: AllDecision;
}

/**
 * Called with every decision. An error that it throws is thrown to the limiter's caller; the promise of an asynchronous one is
 * neither awaited nor is its rejection reported.
 */
export type Observer = (event: DecisionEvent) => void;

/** A channel of `node:diagnostics_channel`, by shape. */
export interface DecisionChannel {
  readonly hasSubscribers: boolean;
  publish(event: unknown): void;
}

/**
 * An observer that publishes every decision while the channel has subscribers. The conventional name is
 * `tidegate:decision`.
 *
 * ```ts
 * import { channel } from "node:diagnostics_channel";
 * const limits = observe(defineLimits({ … }), publish(channel("tidegate:decision")));
 * ```
 *
 * Throws an `InputError` if `channel` is not a channel.
 */
export function publish(channel: DecisionChannel): Observer {
  if (!hasMethods(channel, "publish")) {
    const expects = 'a channel of node:diagnostics_channel, such as channel("tidegate:decision")';
    throw new InputError("channel", expects, channel);
  }
  return (event) => {
    if (channel.hasSubscribers) channel.publish(event);
  };
}

/**
 * The same limiter, with observers: one event per limit and call, after the decision. State and types are the same; a
 * limiter without observers has no overhead.
 *
 * ```ts
 * const limits = observe(defineLimits({ … }), ({ name, decision }) => {
 *   if (!decision.ok) log.info({ name, retryAfter: decision.retryAfter });
 * });
 * ```
 *
 * Throws an `InputError` if an observer is not a function.
 */
export function observe<L extends Limiter>(limiter: L, ...observers: readonly [Observer, ...Observer[]]): L {
  checkLimiter(limiter, "limit");
  if ((observers as readonly Observer[]).length === 0)
    throw new InputError("observers", "at least one function", undefined);
  for (const observer of observers) {
    if (typeof observer !== "function") throw new InputError("observers", "functions of an event", observer);
  }
  const emit = (event: DecisionEvent): void => {
    for (const observer of observers) ignoreRejection(observer(event));
  };
  /** Calls the limiter, which refuses wrong arguments. What events have of them is read then: a caller may use its objects again. */
  const call = <R>(method: DecisionEvent["operation"], ...args: unknown[]): MaybePromise<R> =>
    (limiter[method] as (...args: unknown[]) => MaybePromise<R>).apply(limiter, args);
  /** The answer, reported first, now or later. */
  const reported = <R>(answer: MaybePromise<R>, report: (result: R) => void): MaybePromise<R> =>
    follow(answer, (result) => {
      report(result);
      return result;
    });
  const one =
    (operation: "limit" | "check" | "give" | "charge" | "block", usual: number) =>
    (name: string, options: LimitOptions = {}): unknown => {
      // The event of a denial precedes its error.
      const throws = options?.throws === true;
      const answer = call<Decision>(operation, name, throws ? { ...options, throws: false } : options);
      const { key, count = usual } = options;
      return reported(answer, (decision) => {
        emit({ operation, name, key, count, decision });
        if (throws) grantedOrThrow(limiter.store, name, decision);
      });
    };
  const several =
    (operation: "limitAll" | "checkAll") =>
    (requests: readonly LimitRequest<string>[]): unknown => {
      const answer = call<AllDecision>(operation, requests);
      const called = requests.map(({ name, key, count = 1 }) => ({ operation, name, key, count }));
      return reported(answer, (all) => {
        for (const [i, request] of called.entries()) {
          emit({ ...request, decision: all.decisions[i] as Decision, all });
        }
      });
    };
  const many = (name: string, keys: readonly string[], options: LimitOptions = {}): unknown => {
    const answer = call<readonly Decision[]>("limitMany", name, keys, options);
    const { count = 1 } = options;
    const given = [...keys];
    return reported(answer, (decisions) => {
      for (const [i, key] of given.entries()) {
        emit({ operation: "limitMany", name, key, count, decision: decisions[i] as Decision });
      }
    });
  };
  const methods = {
    limit: one("limit", 1),
    check: one("check", 1),
    give: one("give", 1),
    charge: one("charge", 1),
    block: one("block", 0),
    limitAll: several("limitAll"),
    checkAll: several("checkAll"),
    limitMany: many,
  };
  const own = Object.entries(methods).map(([name, value]) => [name, { value, writable: true, configurable: true }]);
  const by = Object.create(limiter, Object.fromEntries(own)) as L;
  return Object.defineProperty(by, OBSERVED, { value: { by, limiter: unobserved(limiter) } });
}
