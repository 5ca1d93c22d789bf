import type { Lending } from "./options.ts";

/** From one asking to the next it is let grow by this factor: on a clock that stands it would be without bound. */
const GROWTH = 8;

/** How many tokens a key is asked for, as far as they were granted here. */
export class Demand {
  /** Tokens granted here since the store was last asked. */
  spent = 0;
  #since: number | undefined;
  /** A running mean of tokens in each ms. */
  perMs = 0;
  readonly #lending: Lending;

  constructor(lending: Lending) {
    this.#lending = lending;
  }

  /** Begins to count. */
  begin(now: number): void {
    this.#since ??= now;
  }

  /** How many tokens it takes to go on for a while, by what was spent until `now` and those who wait `need`. */
  ahead(now: number, need: number): number {
    const spent = this.spent + need;
    const perMs = spent / Math.max(now - (this.#since ?? now), 1);
    this.perMs = (this.perMs + perMs) / 2;
    this.#since = now;
    this.spent = 0;
    return Math.min(this.perMs * this.#lending.ahead, GROWTH * Math.max(spent, 1));
  }
}
