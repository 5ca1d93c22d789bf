import type { Config } from "../limit/config.ts";
import type { Decision, State } from "../limit/decision.ts";
import { evaluate, project } from "../limit/evaluate.ts";

/** The unused tokens of one reservation. */
interface Slot {
  /** How many were reserved, and how many are left: the last ones. */
  count: number;
  left: number;
  /** Epoch ms, on the limiter's clock, at which the last of them is due. */
  at: number;
  /** The limit's two numbers after the reservation. */
  state: State;
}

/** Tokens are doubles: sums of fractions are equal within a tolerance. */
const close = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));

/** The decision's policy as a config without `maxReserved`; any window start defines its grid. */
function configOf({ policy, ts }: Decision): Config {
  const { kind, rate, period, capacity } = policy;
  return kind === "token bucket" ? { kind, rate, period, capacity } : { kind, rate, period, capacity, start: ts };
}

/** Epoch ms from which nothing is owed. */
function paidAt(state: State, config: Config): number {
  return evaluate(state, config, { now: state.ts, count: 0, reserve: true }).decision.retryAt ?? state.ts;
}

/**
 * Reserved tokens, in the order in which they fall due. They belong to no call: the next call uses the first ones, so
 * calls move up when another is given up, and the last tokens are left over.
 */
export class Slots {
  #slots: Slot[] = [];
  #head = 0;
  #config: Config | undefined;
  /** Tokens left in all of them. */
  tokens = 0;

  add(decision: Decision, count: number): void {
    const { value, ts, now, retryAt = now, policy } = decision;
    if (this.#config === undefined || policy.kind === "fixed window") this.#config = configOf(decision);
    // One shard's state does not determine the others'.
    this.#slots.push({
      count,
      left: count,
      at: retryAt,
      state: { value: policy.shards === 1 ? value : Number.NaN, ts },
    });
    this.tokens += count;
  }

  /** Epoch ms, on the limiter's clock, at which the first `count` tokens are due; `undefined` where there are fewer. */
  due(count: number): number | undefined {
    if (count === 0) return Number.NEGATIVE_INFINITY;
    let first = this.#slots[this.#head];
    if (first === undefined) return undefined;
    while (first.left < count && !close(first.left, count)) {
      const next = this.#slots[this.#head + 1];
      if (next === undefined) return undefined;
      // Merged into one that covers both; each reservation is merged at most once.
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

  /** Uses the first `count` tokens. Call {@link due} first: it merges the slots that cover them. */
  use(count: number): void {
    const first = this.#slots[this.#head];
    if (first === undefined || count === 0) return;
    const rest = close(first.left, count) ? 0 : first.left - count;
    this.tokens -= first.left - rest;
    first.left = rest;
    if (rest === 0) this.#head++;
    // Used slots are dropped in bulk, so that the amortised cost is constant.
    if (this.#head > 1000 && this.#head * 2 > this.#slots.length) {
      this.#slots = this.#slots.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Drops those of the last `spare` tokens that are due: they are unused, and a full limit would have lost them. */
  lapse(spare: number, now: number): void {
    for (let last = this.#last(); spare > 0 && last !== undefined && last.at <= now; last = this.#last()) {
      spare -= this.#drop(Math.min(spare, last.left), last);
    }
  }

  /** How many of the last `spare` tokens were reserved consecutively, with no other client's in between. */
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

  /** Whether the limit is unchanged since the last reservation here. */
  isLast(value: State): boolean {
    const last = this.#last();
    if (last === undefined || Number.isNaN(last.state.value) || value.ts < last.state.ts) return false;
    return close(project(last.state, this.#config as Config, value.ts).value, value.value);
  }

  cut(count: number): void {
    for (let last = this.#last(); count > 0 && last !== undefined; last = this.#last()) {
      count -= this.#drop(Math.min(count, last.left), last);
    }
  }

  /**
   * Sets the limit's state after the last tokens were returned. Where all that are left were reserved consecutively
   * (`whole`), they become one reservation made now.
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

  /** Epoch ms, on the limiter's clock, at which the last token is due. */
  get end(): number | undefined {
    return this.#last()?.at;
  }

  #last(): Slot | undefined {
    return this.#slots.length > this.#head ? this.#slots.at(-1) : undefined;
  }

  /** Removes tokens from the last slot, and returns how many. */
  #drop(count: number, last: Slot): number {
    const rest = close(last.left, count) ? 0 : last.left - count;
    const dropped = last.left - rest;
    this.tokens -= dropped;
    if (rest === 0) {
      this.#slots.pop();
    } else {
      last.left = rest;
      last.count -= dropped;
      // The limit's numbers are not these: `rebase` sets them, where the tokens were returned.
      last.state.value = Number.NaN;
    }
    return dropped;
  }

  /** Whether no other client took tokens between two reservations. */
  #joined(before: Slot, after: Slot): boolean {
    if (Number.isNaN(before.state.value) || Number.isNaN(after.state.value) || after.state.ts < before.state.ts)
      return false;
    return close(project(before.state, this.#config as Config, after.state.ts).value - after.count, after.state.value);
  }
}
