/** The clock and the timers of this folder, which a test may replace. */
import { type Check, hasMethods } from "../limit/checks.ts";
import { delayFor, SECOND } from "../limit/duration.ts";
import { monotonicNow } from "../limit/monotonic.ts";

/** A clock with timers: the host's own, or a test's (`fakeClock()` of `tidegate/testing` is one). */
export interface Clock {
  /** ms since the Unix epoch. */
  now(): number;
  /** Calls back once, about `ms` (0 to 2^31 - 1) from now. */
  setTimeout(callback: () => void, ms: number): unknown;
  /** Cancels a timer of `setTimeout`. */
  clearTimeout(timer: never): void;
}

/**
 * The host's globals, looked up at each call, so that a test's fake timers take effect. If the host's time is set back,
 * this clock goes on from its last reading: otherwise calls that wait would wait for as long in addition.
 */
export function systemClock(): Clock {
  let last = -Infinity;
  let lastMonotonic = 0;
  let ahead = 0;
  return {
    now() {
      const wall = Date.now();
      const monotonic = monotonicNow();
      // It goes back if a test's fake timers replace it.
      const behind = last + Math.max(monotonic - lastMonotonic, 0) - wall;
      // Less than a second: the host's clock is slowed down, or a test stops it and not the other one.
      ahead = wall < last || behind + ahead > SECOND ? Math.max(ahead, behind) : 0;
      last = wall + ahead;
      lastMonotonic = monotonic;
      return last;
    },
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer),
  };
}

export const CLOCK: Check = {
  expects: "an object with now, setTimeout and clearTimeout",
  accepts: (clock) => hasMethods(clock, "now", "setTimeout", "clearTimeout"),
};

/** One timer for one instant. It may call back early: the callback reads the clock, and sets it again. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #timer: unknown;
  #at: number | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at `at`, epoch ms, instead of any earlier setting. */
  set(at: number): void {
    if (at === this.#at) return;
    this.clear();
    this.#at = at;
    const left = Math.ceil(Math.max(0, at - this.#clock.now()));
    const rung = (): void => {
      this.#at = undefined;
      this.#ring();
    };
    this.#timer = this.#clock.setTimeout(rung, delayFor(left));
  }

  clear(): void {
    if (this.#at === undefined) return;
    this.#clock.clearTimeout(this.#timer as never);
    this.#at = undefined;
  }
}
