import type { Config } from "../limit/config.ts";
import type { Decision, State } from "../limit/decision.ts";
import { Limit } from "../limit/limit.ts";

/**
 * Counts what really ran. Tokens that came while their calls could not run (a blocked event loop, no place among those that
 * run) would otherwise be used all at once: from here on they are not, where a full limit would have lost them. Beside the
 * capacity it leaves room for one call, so that a timer that is a little late costs no rate.
 */
export class Meter {
  #limit: Limit | undefined;
  #room = 0;
  #state: State | null = null;
  #start = 0;
  #config: Config | undefined;

  /** Takes the limit's numbers from its own answer. */
  learn({ policy, ts }: Decision): void {
    if (this.#config !== undefined) return;
    const { kind, rate, period, capacity } = policy;
    this.#config = { kind, rate, period, capacity };
    this.#start = kind === "fixed window" ? ts : 0;
  }

  /** Epoch ms, on the limiter's clock, from which a call of `count` tokens may run; `now` or before where it may now. */
  at(count: number, now: number): number {
    if (this.#config === undefined || count === 0) return now;
    if (this.#limit === undefined || count > this.#room) this.#grow(count);
    const call = { op: "check", count, reserve: false } as const;
    return (this.#limit as Limit).evaluate(this.#state, call, now, { start: this.#start }).decision.retryAt ?? now;
  }

  /** A call of `count` tokens runs now. */
  ran(count: number, now: number): void {
    if (this.#limit === undefined || count === 0) return;
    const call = { op: "charge", count, reserve: false } as const;
    this.#state = this.#limit.evaluate(this.#state, call, now, { start: this.#start }).state;
  }

  #grow(count: number): void {
    // Twice as much, so that calls that grow by and by do not each make a new limit.
    const room = this.#room === 0 ? count : count * 2;
    const { capacity = 0, ...config } = this.#config as Config;
    const { kind, rate, period } = config;
    // What reservations may take at one time: what a window brings; and of a bucket what comes in the ms that is rounded.
    const once = kind === "fixed window" ? Math.max(capacity, rate) : capacity + rate / period;
    this.#limit = new Limit("meter", { ...config, capacity: Math.min(once + room, 2 ** 40) } as Config);
    if (this.#state !== null) this.#state = { value: this.#state.value + (room - this.#room), ts: this.#state.ts };
    this.#room = room;
  }
}
