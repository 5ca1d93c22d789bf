import { checkFields, fieldTable, numberError } from "../limit/config.ts";
import { MAX_COUNT } from "../engine/generated/bounds.ts";
import { InputError } from "../limit/errors.ts";
import { type Clock, checkClock } from "./clock.ts";
import { LEVELS } from "./line.ts";
import { Semaphore } from "./semaphore.ts";

/** Settings of {@link throttle} and {@link concurrent}. */
export interface ThrottleOptions<A extends readonly unknown[] = readonly unknown[]> {
  /** Tokens of a call: 0 to 2^40, fractions included, or what tells them from its arguments; default 1. */
  count?: number | ((...args: A) => number) | undefined;
  /**
   * How urgent a call is: a whole number from 0 to 9, or what tells it; default 5. For each level that it is above others
   * it goes before those that came at most 100 calls earlier, so that nobody waits for ever.
   */
  priority?: number | ((...args: A) => number) | undefined;
  /** Whose limit, from a call's arguments: each key has a queue of its own. Default one queue. */
  key?: ((...args: A) => string) | undefined;
  /** Where a call's signal is. Aborted while it waits, it gives its tokens back, and later calls move up. */
  signal?: ((...args: A) => AbortSignal | undefined) | undefined;
  /** Most calls that wait, for each key: a whole number from 1; default 10,000. Further ones reject with a {@link QueueError}. */
  maxQueued?: number | undefined;
  /** ms that a call waits at most: one whose time is known to come later rejects at once. Default without end. */
  maxWait?: number | undefined;
  /** How many run at once: a whole number from 1, for all keys together; or a semaphore that others use too. Default any number. */
  concurrency?: number | Semaphore | undefined;
  /** The clock and the timers; default the host's. Give `fakeClock()` in tests. */
  clock?: Clock | undefined;
}

/** What one call may say for itself, in place of the function's options. */
export interface TurnOptions {
  count?: number | undefined;
  priority?: number | undefined;
  key?: string | undefined;
  signal?: AbortSignal | undefined;
  maxWait?: number | undefined;
}

const OPTIONS = fieldTable("count", "priority", "key", "signal", "maxQueued", "maxWait", "concurrency", "clock");
const TURN = fieldTable("count", "priority", "key", "signal", "maxWait");
export const DEFAULT_PRIORITY = 5;
const MAX_QUEUED = 10_000;

/** Tokens, or the error that says what they must be. */
export function checkTokens(count: unknown): number {
  if (typeof count === "number" && count >= 0 && count <= MAX_COUNT) return count;
  throw numberError("count", count);
}

export function checkPriority(priority: unknown): number {
  const levels = LEVELS - 1;
  if (typeof priority === "number" && Number.isInteger(priority) && priority >= 0 && priority <= levels)
    return priority;
  throw new InputError("priority", `a whole number from 0 to ${levels}`, priority);
}

export function checkKey(key: unknown): string | undefined {
  if (key === undefined || typeof key === "string") return key;
  throw new InputError("key", "a string", key);
}

export function checkSignal(signal: unknown): AbortSignal | undefined {
  const { aborted, addEventListener } = (signal ?? {}) as Partial<AbortSignal>;
  if (signal === undefined || (typeof aborted === "boolean" && typeof addEventListener === "function")) {
    return signal as AbortSignal | undefined;
  }
  throw new InputError("signal", "an AbortSignal", signal);
}

export function checkMaxWait(maxWait: unknown): number | undefined {
  if (maxWait === undefined || (typeof maxWait === "number" && maxWait >= 0)) return maxWait;
  throw new InputError("maxWait", "a number of ms from 0", maxWait);
}

export function checkMaxQueued(maxQueued: unknown = MAX_QUEUED): number {
  if (typeof maxQueued === "number" && maxQueued >= 1 && (Number.isInteger(maxQueued) || maxQueued === Infinity)) {
    return maxQueued;
  }
  throw new InputError("maxQueued", "a whole number from 1, or Infinity", maxQueued);
}

export function checkConcurrency(concurrency: unknown): Semaphore | undefined {
  if (concurrency === undefined || concurrency instanceof Semaphore) return concurrency;
  return new Semaphore(concurrency as number);
}

export function checkFunction(field: string, value: unknown): void {
  if (typeof value !== "function") throw new InputError(field, "a function", value);
}

/** Checks what is known before the first call. */
export function checkOptions<A extends readonly unknown[]>(
  options: ThrottleOptions<A>,
): { clock: Clock; maxQueued: number; semaphore: Semaphore | undefined; maxWait: number | undefined } {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "throttle");
  const { count, priority, key, signal, maxQueued, maxWait, concurrency, clock } = options;
  if (typeof count !== "function" && count !== undefined) checkTokens(count);
  if (typeof priority !== "function" && priority !== undefined) checkPriority(priority);
  for (const [field, value] of Object.entries({ key, signal })) if (value !== undefined) checkFunction(field, value);
  return {
    clock: checkClock(clock),
    maxQueued: checkMaxQueued(maxQueued),
    semaphore: checkConcurrency(concurrency),
    maxWait: checkMaxWait(maxWait),
  };
}

/** Checks what one call says for itself. */
export function checkTurn(options: TurnOptions): TurnOptions {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, TURN, "with");
  const { count, priority, key, signal, maxWait } = options;
  if (count !== undefined) checkTokens(count);
  if (priority !== undefined) checkPriority(priority);
  checkKey(key);
  checkSignal(signal);
  checkMaxWait(maxWait);
  return options;
}
