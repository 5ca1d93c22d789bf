import type { AllDecision, Decision } from "../limit/decision.ts";
import { InputError, RateLimitError } from "../limit/errors.ts";
import type { CallOptions, Limiter, LimitOptions, LimitRequest } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";

/** One decision on one limit. */
export interface DecisionEvent {
  readonly operation: "limit" | "check" | "give" | "charge" | "limitAll" | "checkAll" | "limitMany";
  /** The limit's name. */
  readonly name: string;
  /** Whose limit. Not for metrics: there are as many as clients. */
  readonly key: string | undefined;
  /** Tokens that were asked for. */
  readonly count: number;
  readonly decision: Decision;
  /** With several limits at once, the answer to them all. */
  readonly all?: AllDecision;
}

/** Told every decision. What it throws, the caller of the limiter gets. */
export type Observer = (event: DecisionEvent) => void;

/**
 * The same limiter, whose decisions the observers are told: one event for each limit that was asked, after the answer. It
 * has the same state and the same types; a limiter that nobody observes does nothing for it.
 *
 * ```ts
 * const limits = observe(defineLimits({ … }), ({ name, decision }) => {
 *   if (!decision.ok) log.info({ name, retryAfter: decision.retryAfter });
 * });
 * ```
 *
 * Throws an `InputError` where an observer is no function.
 */
export function observe<N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  ...observers: readonly [Observer, ...Observer[]]
): Limiter<N, S> {
  if (typeof limiter?.limit !== "function") throw new InputError("limiter", "what defineLimits returns", limiter);
  if ((observers as readonly Observer[]).length === 0)
    throw new InputError("observers", "at least one function", undefined);
  for (const observer of observers) {
    if (typeof observer !== "function") throw new InputError("observers", "functions of an event", observer);
  }
  const tell = (event: DecisionEvent): void => {
    for (const observer of observers) observer(event);
  };
  const one = (operation: "limit" | "check" | "give" | "charge") => {
    const ask = limiter[operation].bind(limiter) as unknown as (
      name: string,
      options: LimitOptions & CallOptions,
    ) => Decision | Promise<Decision>;
    return (name: string, options: LimitOptions = {}): unknown => {
      // A denial is told before it is thrown.
      const throws = options?.throws === true;
      const told = (decision: Decision): Decision => {
        tell({ operation, name, key: options.key, count: options.count ?? 1, decision });
        if (throws && !decision.ok) throw new RateLimitError(name, decision);
        return decision;
      };
      const answer = ask(name, throws ? { ...options, throws: false } : options);
      return answer instanceof Promise ? answer.then(told) : told(answer);
    };
  };
  const several = (operation: "limitAll" | "checkAll") => {
    const ask = limiter[operation].bind(limiter) as unknown as (
      requests: readonly LimitRequest<N>[],
    ) => AllDecision | Promise<AllDecision>;
    return (requests: readonly LimitRequest<N>[]): unknown => {
      const told = (all: AllDecision): AllDecision => {
        for (const [i, decision] of all.decisions.entries()) {
          const { name, key, count = 1 } = requests[i] as LimitRequest<N>;
          tell({ operation, name, key, count, decision, all });
        }
        return all;
      };
      const answer = ask(requests);
      return answer instanceof Promise ? answer.then(told) : told(answer);
    };
  };
  const many = (name: string, keys: readonly string[], options: { count?: number | undefined } = {}): unknown => {
    const told = (decisions: readonly Decision[]): readonly Decision[] => {
      for (const [i, decision] of decisions.entries()) {
        tell({ operation: "limitMany", name, key: keys[i], count: options.count ?? 1, decision });
      }
      return decisions;
    };
    const answer = (limiter as unknown as Many).limitMany(name, keys, options);
    return answer instanceof Promise ? answer.then(told) : told(answer);
  };
  const overridden: Record<string, unknown> = {
    limit: one("limit"),
    check: one("check"),
    give: one("give"),
    charge: one("charge"),
    limitAll: several("limitAll"),
    checkAll: several("checkAll"),
    limitMany: many,
  };
  const observed = Object.create(limiter) as Record<string, unknown>;
  // Every method runs on the limiter itself: its private parts are not inherited.
  for (const [name, method] of methodsOf(limiter)) {
    const value = Object.hasOwn(overridden, name) ? overridden[name] : method.bind(limiter);
    Object.defineProperty(observed, name, { value });
  }
  return observed as unknown as Limiter<N, S>;
}

interface Many {
  limitMany(
    name: string,
    keys: readonly string[],
    options: { count?: number | undefined },
  ): readonly Decision[] | Promise<readonly Decision[]>;
}

/** The methods of a limiter, observed ones too: an observed limiter can be observed again. */
function* methodsOf(limiter: object): Generator<[string, (...given: never[]) => unknown]> {
  const found = new Set<string>(["constructor"]);
  for (
    let part: object | null = limiter;
    part !== null && part !== Object.prototype;
    part = Object.getPrototypeOf(part)
  ) {
    for (const name of Object.getOwnPropertyNames(part)) {
      const method = (limiter as Record<string, unknown>)[name];
      if (found.has(name) || typeof method !== "function") continue;
      found.add(name);
      yield [name, method as (...given: never[]) => unknown];
    }
  }
}
