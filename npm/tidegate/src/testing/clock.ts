/** A clock that moves only when it is told to. Made by {@link fakeClock}. */
export interface FakeClock {
  /** The time on it: ms since the Unix epoch. Bound, so `now: clock.now` is the `now` of `defineLimits`. */
  readonly now: () => number;
  /** Moves it on by so many ms; a negative number moves it back, as clocks sometimes do. */
  advance(ms: number): void;
  /** Moves it to this time, in either direction. */
  set(ms: number): void;
}

/** 2025-01-01T00:00:00Z: the start of a second, a minute, an hour and a day, so that expected times are easy to read. */
const START = 1_735_689_600_000;

function finite(ms: number): number {
  if (typeof ms !== "number" || !Number.isFinite(ms))
    throw new TypeError(`a fake clock needs a finite number of ms; got ${String(ms)}`);
  return ms;
}

/**
 * A clock for tests: limits then depend on nothing but what the test says.
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
 * `start` is ms since the Unix epoch; default 2025-01-01T00:00:00Z. Throws a `TypeError` for anything but a finite
 * number. Whether a time is one that limits take (0 to 2^52) is for the limiter to say.
 */
export function fakeClock(start: number = START): FakeClock {
  let time = finite(start);
  return {
    now: () => time,
    advance(ms): void {
      time += finite(ms);
    },
    set(ms): void {
      time = finite(ms);
    },
  };
}
