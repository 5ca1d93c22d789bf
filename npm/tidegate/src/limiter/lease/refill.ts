/** How a lease gets its tokens: one refill at a time, for the requests that wait and for those to come. */
import type { Decision } from "../../limit/decision.ts";
import { isInputError } from "../../limit/errors.ts";
import type { Limit } from "../../limit/limit.ts";
import { monotonicNow } from "../../limit/monotonic.ts";
import type { ResilientStore } from "../resilience.ts";
import type { Call, Key, Op } from "../../stores/contract.ts";
import { Lease, type Turn, type WaitingRequest } from "./lease.ts";
import type { LeaseSettings } from "./options.ts";

/** What all leases of a limiter share: the store, the settings, the limiter's clock, and the host's `waitUntil`. */
export interface Lender {
  readonly resilient: ResilientStore;
  readonly settings: LeaseSettings;
  readonly time: () => number | undefined;
  readonly during: (work: Promise<unknown>) => void;
}

/** ms without taking ahead after a failure of the store. */
const QUIET = 100;
/** ms after which a round trip counts as lost, as if a Worker's request was cut off. */
const LOST = 10_000;
/** Round trips lost to other processes, after which only the first waiting request's tokens are requested. */
const TRIES_FOR_ALL = 2;
/** Those after which the balance returns to the store, which decides on that request itself. */
const TRIES_FOR_FIRST = 4;

/** A lease and its refills, one at a time: for all waiting requests, and some ahead. */
export class RefilledLease extends Lease {
  /** The refill in flight. */
  refilling: Promise<void> | undefined;
  readonly #lender: Lender;
  /** The turn that runs now, if a request of it waits. */
  #turn: Turn | undefined;
  /** When the refill's last round trip began, and until when nothing is taken ahead after a failure, by the monotonic clock. */
  #since = 0;
  #quietUntil = 0;

  constructor(limit: Limit, key: Key, lender: Lender) {
    super(limit, key, lender.settings);
    this.#lender = lender;
  }

  /** Starts a refill, unless one is in flight. */
  refill(): void {
    const now = monotonicNow();
    if (this.refilling !== undefined && now - this.#since < LOST) return;
    if (this.waiting.size === 0 && now < this.#quietUntil) return;
    this.#since = now;
    const refilling = this.#run().finally(() => {
      if (this.refilling !== refilling) return;
      this.refilling = undefined;
      if (this.waiting.size > 0) this.refill();
    });
    this.refilling = refilling;
    this.#lender.during(refilling);
  }

  /** Waits for a refill, or for the deadline. */
  wait(count: number): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const open = this.#turn;
      const turn = open === undefined || open.waiting === 0 ? this.#begin() : open;
      this.waiting.add({ count, turn, resolve, reject });
      this.refill();
    });
  }

  /** Starts the deadline of a turn's requests. */
  #begin(): Turn {
    const late = (error: unknown): void =>
      this.#decideWithout(
        error,
        [...this.waiting].filter((request) => request.turn === turn),
      );
    const turn: Turn = { waiting: 0, cancel: this.#lender.resilient.atDeadline("take", this, late) };
    this.#turn = turn;
    void Promise.resolve().then(() => {
      if (this.#turn === turn) this.#turn = undefined;
    });
    return turn;
  }

  #decideWithout(error: unknown, waiting: readonly WaitingRequest[]): void {
    const { limit, key } = this;
    const { resilient, time } = this.#lender;
    for (const request of waiting) {
      this.waiting.delete(request);
      const { count, resolve, reject } = request;
      try {
        if (isInputError(error)) throw error;
        const now = time();
        const call: Call = { op: "take", limit, key, count, reserve: false };
        resolve(this.spend(count, now) ?? resilient.without(call, now, error));
      } catch (mistake) {
        reject(mistake);
      }
    }
  }

  /** Refills until no request waits. */
  async #run(): Promise<void> {
    // Calls of the same turn are included.
    await undefined;
    try {
      let first = this.waiting.first;
      for (let tries = 1; ; tries++) {
        if (tries > TRIES_FOR_FIRST) {
          await this.#straight();
        } else {
          const now = this.now(this.#lender.time());
          const count = tries > TRIES_FOR_ALL ? this.sizeForFirst(now) : this.size(now);
          if (first === undefined && count === 0) return this.rest();
          const decision = await this.#put(count === 0 ? "check" : "take", count, count);
          this.#answer(decision.now);
        }
        if (this.waiting.size === 0) return;
        if (first !== this.waiting.first) tries = 0;
        first = this.waiting.first;
      }
    } catch (error) {
      this.#quietUntil = monotonicNow() + QUIET;
      this.#decideWithout(error, [...this.waiting]);
    }
  }

  /** One call of the store. If it is granted, the lease has `lent` more tokens. */
  async #put(op: Op, count: number, lent: number): Promise<Decision> {
    const { limit, key } = this;
    const { resilient, time } = this.#lender;
    const mark = this.mark();
    this.#since = mark.monotonic;
    // Also after the deadline of those that waited for it: the tokens are taken.
    const learn = (decision: Decision): void => this.learn(decision, decision.ok ? lent : 0, mark);
    return resilient.attempt({ op, limit, key, count, reserve: false }, time(), learn);
  }

  /** Resolves waiting requests in order, as far as the balance and the store's state settle them. */
  #answer(now: number): void {
    for (const request of this.waiting) {
      const decision = this.spend(request.count, now);
      if (decision === undefined) return;
      this.waiting.delete(request);
      request.resolve(decision);
    }
  }

  /** Lets the store decide on the first waiting request, after the balance has returned to it. */
  async #straight(): Promise<void> {
    const back = this.empty(this.now(this.#lender.time()));
    if (back > 0) await this.#put("give", back, 0);
    const first = this.waiting.first;
    if (first === undefined) return;
    const decision = await this.#put("take", first.count, 0);
    this.waiting.delete(first);
    first.resolve(decision);
  }
}
