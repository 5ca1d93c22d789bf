/** A clock that only a test moves. */
import { InputError } from "../limit/errors.ts";

/** A clock that only a test moves, and its timers. Made by {@link fakeClock}. */
export interface FakeClock {
  /** The time on it: ms since the Unix epoch. Bound, so `now: clock.now` is the `now` of `defineLimits`. */
  readonly now: () => number;
  /**
   * Moves it by this many ms, forward or back. Timers that fall due run on the way, each at its own time. Code that waits for
   * a promise in between runs later: see {@link FakeClock.pass}.
   */
  advance(ms: number): void;
  /** Moves it to this time, in either direction, in one jump; then timers that are due run. */
  set(ms: number): void;
  /** Calls back once, `ms` from now on this clock: a `setTimeout` for code that takes a clock. */
  readonly setTimeout: (callback: () => void, ms: number) => number;
  /** Cancels a timer; without effect on one that has run or never existed. */
  readonly clearTimeout: (timer: number) => void;
  /** How many timers wait. */
  readonly timers: number;
  /** {@link FakeClock.advance}, letting promises settle before, between and after the timers. */
  pass(ms: number): Promise<void>;
}

/** 2025-01-01T00:00:00Z: the start of a second, a minute, an hour and a day, so that expected times are easy to read. */
const START = 1_735_689_600_000;

function finite(field: "start" | "ms", ms: number): number {
  if (typeof ms !== "number" || !Number.isFinite(ms)) throw new InputError(field, "a finite number of ms", ms);
  return ms;
}

/** The host's own timers, which a test may replace later. */
const { setTimeout: realTimeout, setImmediate: realImmediate } = globalThis;
/** Those of a runner, such as Jest's with `enableGlobally`, may have replaced them before this module was loaded. */
const areFake = "clock" in Object(realImmediate ?? realTimeout);

/** Resolves after the code that waits for promises alone has run. */
const settled = (): Promise<void> =>
  new Promise((resolve) => {
    // Only then: workerd delivers a message before promises have settled.
    if (areFake && typeof MessageChannel !== "undefined") {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(undefined);
    } else if (realImmediate === undefined) realTimeout(resolve, 0);
    else realImmediate(resolve);
  });

/**
 * A clock for tests, so that decisions depend on the test alone.
 *
 * ```ts
 * const clock = fakeClock();
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 1, period: SECOND } }, { now: clock.now });
 * limits.limit("login").ok; // true
 * limits.limit("login").ok; // false
 * clock.advance(SECOND);
 * limits.limit("login").ok; // true
 * ```
 *
 * A runner's fake timers move limits in memory too: `vi.useFakeTimers()` in Vitest, `jest.useFakeTimers()` in Jest. Code
 * that waits, such as `throttle`, needs `await advanceTimersByTimeAsync(ms)`.
 *
 * `start` is ms since the Unix epoch; default 2025-01-01T00:00:00Z. Throws an `InputError` for anything but a finite
 * number. The limiter checks that a time is from 0 to 2^52.
 */
export function fakeClock(start: number = START): FakeClock {
  let time = finite("start", start);
  let ids = 0;
  /** In order of time, then of age. */
  const timers: { readonly id: number; readonly at: number; readonly callback: () => void }[] = [];

  /** Runs the first timer that is due by then, at its time or now, whichever is later. */
  function runFirst(end: number): boolean {
    const [first] = timers;
    if (first === undefined || first.at > end) return false;
    timers.shift();
    time = Math.max(time, first.at);
    first.callback();
    return true;
  }

  return {
    now: () => time,
    get timers(): number {
      return timers.length;
    },
    setTimeout(callback, ms): number {
      if (typeof callback !== "function") throw new InputError("callback", "a function", callback);
      const timer = { id: ++ids, at: time + Math.max(0, finite("ms", ms)), callback };
      const after = timers.findIndex(({ at }) => at > timer.at);
      timers.splice(after === -1 ? timers.length : after, 0, timer);
      return timer.id;
    },
    clearTimeout(id): void {
      const index = timers.findIndex((timer) => timer.id === id);
      if (index !== -1) timers.splice(index, 1);
    },
    advance(ms): void {
      const end = time + finite("ms", ms);
      while (runFirst(end));
      time = end;
    },
    set(ms): void {
      time = finite("ms", ms);
      while (runFirst(time));
    },
    async pass(ms): Promise<void> {
      const end = time + finite("ms", ms);
      await settled();
      while (runFirst(end)) await settled();
      time = end;
      await settled();
    },
  };
}
