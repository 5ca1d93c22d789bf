/** The tokens that a queue has reserved for its calls, and when the next call may run. */
import { algebra } from "../engine/algebra.ts";
import { MAX_COUNT } from "../engine/generated/bounds.ts";
import { isPromise } from "../limit/realms.ts";
import type { Config } from "../limit/config.ts";
import type { Decision, State } from "../limit/decision.ts";
import { Evaluator } from "../limit/evaluator.ts";
import type { Value } from "../limiter/options.ts";
import type { Clock } from "./clock.ts";
import { configOfDecision, Slots } from "./slots.ts";
import type { Source } from "./source.ts";

/** The share of a later decision's delay that counts as clock drift; the rest is network delay. */
const DRIFT = 1 / 64;

/** The reserved tokens of one queue. It stores times of the limiter's clock, and takes and returns those of this clock. */
export class Reserve {
  readonly #source: Source;
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #slots: Slots = new Slots();
  /** Since the first decision. */
  #meter: ReturnType<typeof meterOf> | undefined;
  /** Tokens that the queued calls need. */
  #owed = 0;
  /** Requests to the source that are in flight. */
  #requests = 0;
  /** This clock minus the limiter's, ms. */
  #offset: number | undefined;
  #giving: Promise<void> | undefined;
  /** Whether more may have to be given back when `#giving` has ended. */
  #givesMore = false;

  constructor(source: Source, clock: Clock, changed: () => void) {
    this.#source = source;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Whether no request to the source is in flight. */
  get isSettled(): boolean {
    return this.#giving === undefined && this.#requests === 0;
  }

  /** Whether queued calls need more tokens than are reserved or requested, not counting what is only rounding. */
  get isShort(): boolean {
    return this.#slots.spare < -this.#slots.slack;
  }

  /** Requests the tokens that are missing for the queued calls, at most `count`; `undefined` if none are. */
  take(count: number): Decision | undefined | Promise<Decision | undefined> {
    if (this.#giving !== undefined) return this.#giving.then(() => this.take(count));
    const slots = this.#slots;
    const sent = this.#clock.now();
    // Spare tokens that are due are lost, as a full limit would have lost them. This call's need is in the sum already.
    slots.cut(slots.spare + count, sent - (this.#offset ?? 0));
    const need = Math.min(count, -slots.spare);
    if (need <= 0) return undefined;
    const answer = this.#source.take(need);
    slots.spare += need;
    if (!isPromise(answer)) return this.#add(answer, need, sent);
    this.#requests++;
    return answer.then(
      (decision) => {
        this.#requests--;
        return this.#add(decision, need, sent);
      },
      (error) => {
        this.#requests--;
        slots.spare -= need;
        throw error;
      },
    );
  }

  /** Adds the tokens of a grant. `sent`: when the request was made, on this clock. */
  #add(decision: Decision, count: number, sent: number): Decision {
    if (!decision.ok) {
      this.#slots.spare -= count;
      return decision;
    }
    const isOwn = decision.degraded !== true;
    const now = this.#clock.now();
    if (isOwn) {
      // Each decision arrives late by its way back, so the least delay is the best estimate. The clocks drift slowly.
      const offset = now - decision.now;
      // Until now it metered by what took a failed store's place, such as a local limit, with instants of this clock.
      if (this.#offset === undefined) {
        this.#meter = undefined;
        this.#slots.shift(-offset);
      }
      const known = this.#offset ?? offset;
      // It was made after the request was sent: less than that is from before one of the clocks was set.
      this.#offset = offset <= known ? offset : Math.max(known + (offset - known) * DRIFT, sent - decision.now);
    }
    this.#meter ??= meterOf(configOfDecision(decision));
    // What took a failed store's place is not of its clock, and a local limit has another rate and state.
    this.#slots.add(decision, count, isOwn ? 0 : now - (this.#offset ?? 0) - decision.now);
    return decision;
  }

  /** Adds `count` to the tokens that the queued calls need; it may be negative. */
  owe(count: number): void {
    this.#owed += count;
    this.#slots.spare -= count;
  }

  /** Epoch ms, on this clock, from which the first call may run; `undefined` while its tokens are being reserved. */
  due(count: number, now: number): number | undefined {
    const due = this.#slots.due(count);
    if (due === undefined) return undefined;
    const offset = this.#offset ?? 0;
    const limiterNow = now - offset;
    return (due > limiterNow ? due : (this.#meter?.at(count, limiterNow) ?? limiterNow)) + offset;
  }

  /** The earliest time of a call, epoch ms on this clock, if the calls behind it need `behind` tokens. */
  end(behind: number): number {
    return this.#slots.end(this.#owed - behind) + (this.#offset ?? 0);
  }

  use(count: number, now: number): void {
    this.#slots.use(count);
    this.#owed -= count;
    this.#meter?.ran(count, now - (this.#offset ?? 0));
  }

  /**
   * Returns the tokens that no call needs. Those before another client's reservation cannot be returned, because its time is
   * fixed already: they serve the next calls of this queue.
   */
  giveBack(): void {
    this.#givesMore = this.#giving !== undefined;
    if (this.#givesMore || this.#requests > 0 || this.#slots.unbroken() <= this.#slots.slack) return;
    try {
      const value = this.#source.value();
      if (!isPromise(value)) {
        this.#give(value);
        return;
      }
      this.#giving = value
        .then((value) => this.#give(value))
        .catch(() => undefined)
        .finally(() => {
          this.#giving = undefined;
          if (this.#givesMore) this.giveBack();
          this.#changed();
        });
    } catch {
      // The store failed: the tokens stay taken.
    }
  }

  #give(value: Value): void | Promise<void> {
    if (!this.#slots.isLast(value)) return;
    const end = this.#slots.unbroken(this.#slots.tokens);
    const whole = end >= this.#slots.tokens;
    const count = Math.min(end, this.#slots.spare);
    if (count <= this.#slots.slack) return;
    const isSplit = this.#slots.cut(count);
    // At most what the limit would hold by now without the reservation: a full limit would have lost the rest.
    const room = (value.config.capacity ?? value.config.rate) - value.value - this.#owed;
    const after = room > 0 ? this.#source.give(Math.min(count, room)) : value;
    const rebase = (state: State): void => {
      // Others may have reserved behind the last reservation that is left.
      if (whole || isSplit) this.#slots.rebase(state, whole);
    };
    if (isPromise(after)) return after.then(rebase);
    rebase(after);
  }
}

/**
 * Bounds how many calls run together after a pause. While calls cannot run (a blocked event loop, no free place), more and more
 * reserved tokens fall due; a limit that is full would have lost them. The meter is such a limit, of the capacity and one call:
 * one call more, so that a late timer costs no rate.
 */
function meterOf({ capacity = 0, ...config }: Config) {
  const { kind, rate, period } = config;
  // What reservations may take at one instant: a window's rate, or a bucket's capacity and the ms that is rounded.
  const once = kind === "fixed window" ? Math.max(capacity, rate) : capacity + rate / (period as number);
  let limit: Evaluator | undefined;
  /** The most tokens of a call so far. */
  let room = 0;
  let state: State | null = null;

  function limitFor(count: number): Evaluator {
    if (limit !== undefined && count <= room) return limit;
    limit = new Evaluator("meter", { ...config, capacity: Math.min(once + count, MAX_COUNT) } as Config, algebra());
    if (state !== null) state = { value: state.value + (count - room), ts: state.ts };
    room = count;
    return limit;
  }

  return {
    /** Epoch ms, on the limiter's clock, from which a call of `count` tokens may run; `now` or before if it may now. */
    at(count: number, now: number): number {
      if (count === 0) return now;
      const call = { op: "check", count, reserve: false } as const;
      return limitFor(count).evaluate(state, call, now).decision.retryAt ?? now;
    },
    ran(count: number, now: number): void {
      if (limit !== undefined) ({ state } = limit.evaluate(state, { op: "charge", count, reserve: false }, now));
    },
  };
}
