import type { Clock } from "./clock.ts";

/** The longest that a timer of the host takes; anything beyond would run at once. */
const LONGEST = 2 ** 31 - 1;

/** One timer, for one time. A timer of the host that runs early, or cannot wait so long, is set again. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #timer: unknown;
  #at: number | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at `at`, epoch ms, and at no other time. */
  set(at: number): void {
    if (at === this.#at) return;
    this.clear();
    this.#at = at;
    this.#wait();
  }

  clear(): void {
    if (this.#at === undefined) return;
    this.#clock.clearTimeout(this.#timer as never);
    this.#at = undefined;
  }

  #wait(): void {
    const left = Math.ceil(Math.max(0, (this.#at as number) - this.#clock.now()));
    this.#timer = this.#clock.setTimeout(() => this.#fired(), Math.min(left, LONGEST));
  }

  #fired(): void {
    if (this.#at === undefined) return;
    if (this.#clock.now() < this.#at) {
      this.#wait();
    } else {
      this.#at = undefined;
      this.#ring();
    }
  }
}
