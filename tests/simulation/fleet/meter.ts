/** Meters, independent of the core: they compare granted tokens with what the limit grants. */
import { type Bucket, earned } from "./scenario.ts";

/** What rounding may add up to, in tokens. */
export const TOLERANCE = 1e-3;

/** The most tokens of any span of time, beyond what was earned in that span. */
export class SpanMeter {
  #level = 0;
  #at = 0;

  /**
   * Adds tokens at `now`, ms; a clock that steps back is taken to stand still. Returns how many more than `capacity` plus
   * what was earned the worst span ending now has: at most 0 if the limit holds.
   */
  add(limit: Bucket, tokens: number, now: number): number {
    const at = Math.max(now, this.#at);
    const gained = this.#at === 0 ? 0 : earned(limit, this.#at, at);
    this.#level = Math.max(this.#level - gained, 0) + tokens;
    this.#at = at;
    return this.#level - limit.capacity;
  }

  /** Returns tokens. */
  remove(limit: Bucket, tokens: number, now: number): void {
    this.add(limit, 0, now);
    this.#level = Math.max(this.#level - tokens, 0);
  }
}

/** All tokens since the beginning. */
export class SumMeter {
  #sum = 0;

  /** Adds tokens at `now`. Returns how many more these are than the limit grants since `began`. */
  add(limit: Bucket, tokens: number, began: number, now: number): number {
    this.#sum += tokens;
    return this.#sum - (limit.capacity + earned(limit, began, now));
  }
}
