/** The options of `throttle` and `concurrent`, and their checks. */
import {
  type Check,
  durationFrom,
  FUNCTION,
  integerFrom,
  orFunction,
  SIGNAL,
  STRING,
  type Table,
} from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import type { Duration } from "../limit/duration.ts";
import { CLOCK, type Clock } from "./clock.ts";
import { isSemaphore, PLACES, Semaphore } from "./semaphore.ts";
import { LEVELS } from "./waiting.ts";

/**
 * A function's arguments, which its options do not infer. `NoInfer` of a tuple is no list of parameters: a `key` with fewer
 * parameters than the function would not compile.
 */
export type ArgumentsOf<A extends readonly unknown[]> = [A][A extends unknown ? 0 : never];

/** Settings of {@link throttle} and {@link concurrent}. */
export interface ThrottleOptions<A extends readonly unknown[] = readonly unknown[]> {
  /** Tokens of a call: 0 to 2^40, fractions included, or a function of the call's arguments; default 1. */
  count?: number | ((...args: A) => number) | undefined;
  /**
   * Urgency of a call: an integer from 0 to 9, or a function of the call's arguments; default 5. For each level above
   * other calls, it precedes those that arrived at most 100 calls earlier. So every call runs eventually.
   */
  priority?: number | ((...args: A) => number) | undefined;
  /** The limit's key, from a call's arguments: each key has its own queue. Default one queue. */
  key?: ((...args: A) => string) | undefined;
  /** The call's abort signal, from its arguments. Aborting a queued call returns its tokens, and later calls move up. */
  signal?: ((...args: A) => AbortSignal | undefined) | undefined;
  /** Most queued calls per key: an integer from 1, or `Infinity`; default 10,000. Further calls reject with a {@link QueueError}. */
  maxQueued?: number | undefined;
  /** Longest wait of a call, the store's answer included: ms or a string such as `"30s"`. One that would run later rejects. Default unlimited. */
  maxWait?: Duration | undefined;
  /** Most calls that run concurrently, over all keys: an integer from 1, or a shared semaphore. Default unlimited. */
  concurrency?: number | Semaphore | undefined;
  /** The clock and the timers; default the host's. Pass `fakeClock()` in tests. */
  clock?: Clock | undefined;
}

/** Settings of one call, which override the function's. */
export interface TurnOptions {
  /** Tokens: 0 to 2^40. */
  count?: number | undefined;
  /** Urgency: an integer from 0 to 9. */
  priority?: number | undefined;
  /** The limit's key. */
  key?: string | undefined;
  /** Aborts the call while it is queued. */
  signal?: AbortSignal | undefined;
  /** Longest wait: ms, or a string such as `"30s"`. */
  maxWait?: Duration | undefined;
}

export const DEFAULT_PRIORITY = 5;
export const DEFAULT_QUEUED = 10_000;

export const PRIORITY: Check = integerFrom(`an integer from 0 to ${LEVELS - 1}`, 0, LEVELS - 1);
/** The options that throttled functions and a limited `fetch` share. */
export const SHARED: Readonly<Record<"maxQueued" | "maxWait" | "concurrency" | "clock", Check>> = {
  maxQueued: {
    expects: "an integer from 1, or Infinity",
    accepts: (calls) => calls === Infinity || (Number.isInteger(calls) && (calls as number) >= 1),
  },
  maxWait: durationFrom(0),
  concurrency: {
    expects: `${PLACES.expects}, or a semaphore of semaphore()`,
    accepts: (places) => isSemaphore(places) || PLACES.accepts(places),
  },
  clock: CLOCK,
};
export const THROTTLE: Table = {
  count: orFunction(TOKENS),
  priority: orFunction(PRIORITY),
  key: FUNCTION,
  signal: FUNCTION,
  ...SHARED,
};
export const TURN: Table = { count: TOKENS, priority: PRIORITY, key: STRING, signal: SIGNAL, maxWait: SHARED.maxWait };

export const semaphoreOf = (concurrency: number | Semaphore | undefined): Semaphore | undefined =>
  typeof concurrency === "number" ? new Semaphore(concurrency) : concurrency;
