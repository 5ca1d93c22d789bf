import { InputError } from "../limit/errors.ts";

/**
 * Where time comes from: the host's own clock and timers, or those of a test (`fakeClock()` of `tidegate/testing` is one).
 */
export interface Clock {
  /** ms since the Unix epoch. */
  now(): number;
  /** Calls back once, about `ms` (0 to 2^31 - 1) from now. */
  setTimeout(callback: () => void, ms: number): unknown;
  /** Forgets a timer that `setTimeout` gave. */
  clearTimeout(timer: never): void;
}

/** The host's. Looked up at each call: whoever puts a fake in its place is heard. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer),
};

/** Passes the clock on, or says what is wrong with it. */
export function checkClock(clock: unknown = systemClock): Clock {
  const { now, setTimeout, clearTimeout } = (clock ?? {}) as Partial<Clock>;
  if ([now, setTimeout, clearTimeout].every((part) => typeof part === "function")) return clock as Clock;
  throw new InputError("clock", "an object with now, setTimeout and clearTimeout", clock);
}
