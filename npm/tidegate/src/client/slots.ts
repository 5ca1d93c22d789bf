import type { Config } from "../limit/config.ts";
import type { Decision, State } from "../limit/decision.ts";
import { evaluate, project } from "../limit/evaluate.ts";

/** Tokens of one reservation that nobody has used yet. */
interface Slot {
  /** How many were reserved, and how many of them are left: the last ones. */
  count: number;
  left: number;
  /** Epoch ms, on the limiter's clock, at which the last of them has come. */
  at: number;
  /** The limit's two numbers after the reservation. */
  state: State;
}

/** Tokens are doubles: sums of fractions differ in the last digits. */
const close = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));

/** The limit as the algebra takes it: what is owed may be as much as it is; a window's grid is known by any of its starts. */
function configOf({ policy, ts }: Decision): Config {
  const { kind, rate, period, capacity } = policy;
  return kind === "token bucket" ? { kind, rate, period, capacity } : { kind, rate, period, capacity, start: ts };
}

/** Epoch ms from which nothing is owed any more. */
function paidAt(state: State, config: Config): number {
  return evaluate(state, config, { now: state.ts, count: 0, reserve: true }).decision.retryAt ?? state.ts;
}

/**
 * Tokens taken ahead of time, in the order in which they come. Which call uses them is not settled here: the next one
 * uses the first, so that calls move up when another is given up, and the last ones are left.
 */
export class Slots {
  #slots: Slot[] = [];
  #head = 0;
  #config: Config | undefined;
  /** Tokens left in all of them. */
  tokens = 0;

  /** Takes in what was granted. */
  add(decision: Decision, count: number): void {
    const { value, ts, now, retryAt = now, policy } = decision;
    if (this.#config === undefined || policy.kind === "fixed window") this.#config = configOf(decision);
    // A shard's two numbers say nothing of the others'.
    this.#slots.push({
      count,
      left: count,
      at: retryAt,
      state: { value: policy.shards === 1 ? value : Number.NaN, ts },
    });
    this.tokens += count;
  }

  /** When the first `count` tokens have come, epoch ms on the limiter's clock; `undefined` where there are not so many. */
  due(count: number): number | undefined {
    if (count === 0) return Number.NEGATIVE_INFINITY;
    let first = this.#slots[this.#head];
    if (first === undefined) return undefined;
    while (first.left < count && !close(first.left, count)) {
      const next = this.#slots[this.#head + 1];
      if (next === undefined) return undefined;
      // One that covers both: each reservation is merged at most once.
      if (!this.#joined(first, next)) next.state.value = Number.NaN;
      next.count += first.count;
      next.left += first.left;
      next.at = Math.max(next.at, first.at);
      this.#head++;
      first = next;
    }
    if (close(first.left, count) || Number.isNaN(first.state.value)) return first.at;
    const { value, ts } = first.state;
    return Math.min(first.at, paidAt({ value: value + (first.left - count), ts }, this.#config as Config));
  }

  /** The first `count` tokens are used. Call {@link due} before: it says whether they are there. */
  use(count: number): void {
    const first = this.#slots[this.#head];
    if (first === undefined || count === 0) return;
    const rest = close(first.left, count) ? 0 : first.left - count;
    this.tokens -= first.left - rest;
    first.left = rest;
    if (rest === 0) this.#head++;
    // Forgotten in one go, now and then, so that each costs the same.
    if (this.#head > 1000 && this.#head * 2 > this.#slots.length) {
      this.#slots = this.#slots.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Drops what has come of the last `spare` tokens: nobody used it, and a full limit would have lost it. */
  lapse(spare: number, now: number): void {
    for (let last = this.#last(); spare > 0 && last !== undefined && last.at <= now; last = this.#last()) {
      spare -= this.#drop(Math.min(spare, last.left), last);
    }
  }

  /** How many of the last `spare` tokens stand at the end of what is owed, with nobody else's between them. */
  unbroken(spare: number): number {
    let found = 0;
    for (let i = this.#slots.length - 1; i >= this.#head && found < spare; i--) {
      const slot = this.#slots[i] as Slot;
      if (Number.isNaN(slot.state.value)) break;
      found += slot.left;
      const before = this.#slots[i - 1];
      if (slot.left !== slot.count || i === this.#head || !this.#joined(before as Slot, slot)) break;
    }
    return Math.min(found, spare);
  }

  /** Whether the limit has not been touched since the last reservation here. */
  isLast(value: State): boolean {
    const last = this.#last();
    if (last === undefined || Number.isNaN(last.state.value) || value.ts < last.state.ts) return false;
    return close(project(last.state, this.#config as Config, value.ts).value, value.value);
  }

  /** The last `count` tokens are no more ours. */
  cut(count: number): void {
    for (let last = this.#last(); count > 0 && last !== undefined; last = this.#last()) {
      count -= this.#drop(Math.min(count, last.left), last);
    }
  }

  /**
   * What the limit holds after the last of them were given back. Where all that are left stand at its end (`whole`), they are
   * from now on as if they had been reserved at once, and just now.
   */
  rebase({ value, ts }: State, whole: boolean): void {
    const last = this.#last();
    if (last === undefined || this.#config === undefined) return;
    last.state = { value, ts };
    last.at = paidAt(last.state, this.#config);
    if (!whole) return;
    this.#slots = [{ ...last, count: this.tokens, left: this.tokens }];
    this.#head = 0;
  }

  /** When the last token comes, epoch ms on the limiter's clock. */
  get end(): number | undefined {
    return this.#last()?.at;
  }

  #last(): Slot | undefined {
    return this.#slots.length > this.#head ? this.#slots.at(-1) : undefined;
  }

  /** Takes this many out of the last slot. */
  #drop(count: number, last: Slot): number {
    const rest = close(last.left, count) ? 0 : last.left - count;
    const dropped = last.left - rest;
    this.tokens -= dropped;
    if (rest === 0) {
      this.#slots.pop();
    } else {
      last.left = rest;
      last.count -= dropped;
      last.state.value += dropped;
      if (!Number.isNaN(last.state.value)) last.at = paidAt(last.state, this.#config as Config);
    }
    return dropped;
  }

  /** Whether nobody took anything between two reservations. */
  #joined(before: Slot, after: Slot): boolean {
    if (Number.isNaN(before.state.value) || Number.isNaN(after.state.value) || after.state.ts < before.state.ts)
      return false;
    return close(project(before.state, this.#config as Config, after.state.ts).value - after.count, after.state.value);
  }
}
