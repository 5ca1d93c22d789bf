/** `Date.now` and `performance.now` drift apart by less, unless the machine slept or its time was set. */
const JUMP_MS = 1000;
/** How far two good clocks drift apart, in ms per ms: the error of a measurement grows by as much. */
const DRIFT = 1e-4;
/** Requests that measure the clock: the first one also opens a connection, which distorts its measurement. */
export const EXCHANGES = 3;
/** An error of the clock that a person does not notice. */
const GOOD_ENOUGH_MS = 25;

/**
 * The server's clock as seen from here: this machine's plus an offset. An answer's `now` was read between the request and
 * the answer, so the middle of the two is off by at most half the round trip: the smallest one wins.
 *
 * It goes by `Date.now`, which runs on while the machine sleeps; `performance.now` may stand still, but cannot be set.
 */
export class ClockOffset {
  #offset: number | undefined;
  /** Most that the offset was off by, in ms, when it was measured; infinite if no round trip has measured it. */
  #error = Infinity;
  #measuredAt = 0;
  /** Requests that measured it since the start, or since the last jump. */
  #exchanges = 0;
  /** By how many ms `Date.now` is ahead of `performance.now`. */
  #apart: number = Date.now() - performance.now();

  /** Epoch ms on the server, whole. */
  now(): number {
    return Math.max(0, Math.floor(Date.now() + (this.#offset ?? 0)));
  }

  /** The time on this machine at which it is `at` on the server. */
  here(at: number): number {
    return Math.ceil(at - (this.#offset ?? 0));
  }

  /** Most that the offset is off by, in ms. */
  error(): number {
    return this.#error + (performance.now() - this.#measuredAt) * DRIFT;
  }

  /** Whether a further request should measure it. */
  isRough(): boolean {
    return this.#exchanges < EXCHANGES && this.error() > GOOD_ENOUGH_MS;
  }

  /** An answer came just now, `roundTrip` ms after its request; in between it was `now` on the server. */
  exchanged(now: number, roundTrip: number): void {
    this.#exchanges++;
    if (roundTrip / 2 > this.error()) return;
    this.#offset = now - (Date.now() - roundTrip / 2);
    this.#error = roundTrip / 2;
    this.#measuredAt = performance.now();
  }

  /** The server wrote a value at `now`, an unknown time ago: it is at least that late on the server. */
  heard(now: number): void {
    const least = now - Date.now();
    if (this.#offset === undefined || least > this.#offset) this.#offset = least;
  }

  /** Whether the machine slept or its time was set since the last call. Any new measurement then replaces the old one. */
  jumped(): boolean {
    const apart = Date.now() - performance.now();
    if (Math.abs(apart - this.#apart) <= JUMP_MS) return false;
    this.#apart = apart;
    this.#error = Infinity;
    this.#exchanges = 0;
    return true;
  }
}
