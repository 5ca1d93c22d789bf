/** Reserved tokens in the order in which they fall due. */
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
  /** The limit's two numbers after the reservation, if they are known. */
  state: State | undefined;
}

/** The part of a sum of fractions that may be rounding. A larger one would hide the tokens of a small call. */
const ROUNDING = 1e-12;
/** Tokens are doubles: sums of fractions are equal within a tolerance. */
const close = (a: number, b: number): boolean => Math.abs(a - b) <= ROUNDING * Math.abs(a);

/** The decision's policy as a config without `maxReserved`; any window start defines its grid. */
export function configOfDecision({ policy, ts }: Decision): Config {
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
  /**
   * Those that no queued call needs, requested ones included; below 0, as many are still to be requested. Not the difference of
   * two sums, whose rounding errors grow with each call.
   */
  spare = 0;
  /** What rounding may have added, or taken. */
  slack = 0;

  /** `ahead`: how far the limiter's clock is ahead of the decision's, if that took a failed store's place. */
  add(decision: Decision, count: number, ahead: number): void {
    const { value, ts, now, retryAt = now, policy, degraded } = decision;
    const isOwn = degraded !== true;
    if (isOwn && (this.#config === undefined || policy.kind === "fixed window"))
      this.#config = configOfDecision(decision);
    // One shard's state does not determine the others'.
    const state = isOwn && policy.shards === 1 ? { value, ts } : undefined;
    if (this.#last() === undefined) this.tokens = 0;
    this.#slots.push({ count, left: count, at: retryAt + ahead, state });
    this.tokens += count;
    this.slack = Math.max(this.slack, ROUNDING * this.tokens);
  }

  /** Moves all that are due by this many ms; their states are not known. */
  shift(ms: number): void {
    for (const slot of this.#slots) slot.at += ms;
  }

  /** Epoch ms, on the limiter's clock, at which the first `count` tokens are due; `undefined` if there are fewer. */
  due(count: number): number | undefined {
    if (count <= this.slack) return -Infinity;
    let first = this.#slots[this.#head];
    if (first === undefined) return undefined;
    while (first.left < count - this.slack) {
      const next = this.#slots[this.#head + 1];
      if (next === undefined) return undefined;
      // Merged into one that covers both; each reservation is merged at most once.
      if (!this.#joined(first, next)) next.state = undefined;
      next.count += first.count;
      next.left += first.left;
      next.at = Math.max(next.at, first.at);
      this.#head++;
      first = next;
    }
    if (first.left <= count || first.state === undefined) return first.at;
    const { value, ts } = first.state;
    return paidAt({ value: value + (first.left - count), ts }, this.#config as Config);
  }

  /** Uses the first `count` tokens, which a call no longer needs. Call {@link due} first: it merges the slots that cover them. */
  use(count: number): void {
    this.spare += count;
    const first = this.#slots[this.#head];
    if (first === undefined) return;
    const rest = close(first.left, count) ? 0 : Math.max(first.left - count, 0);
    this.#lose(first.left - rest);
    first.left = rest;
    if (rest === 0) this.#head++;
    // Used slots are dropped in bulk, so that the amortised cost is constant.
    if (this.#head > 1000 && this.#head * 2 > this.#slots.length) {
      this.#slots = this.#slots.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Drops the last `count` tokens, as far as they are due at `now`. Returns whether a part of a reservation is left. */
  cut(count: number, now: number = Infinity): boolean {
    let isSplit = false;
    // What rounding left of the count is not a token, and may be too little to change the rest.
    for (let last = this.#last(); count > this.slack && last !== undefined && last.at <= now; last = this.#last()) {
      const rest = close(last.left, count) ? 0 : Math.max(last.left - count, 0);
      const dropped = last.left - rest;
      count -= dropped;
      this.#lose(dropped);
      if (rest === 0) {
        this.#slots.pop();
      } else {
        last.left = rest;
        last.count -= dropped;
        // Unknown until `rebase`, if the tokens were returned.
        last.state = undefined;
        isSplit = true;
      }
    }
    return isSplit;
  }

  #lose(tokens: number): void {
    this.tokens -= tokens;
    this.spare -= tokens;
  }

  /** How many of the last `spare` tokens were reserved consecutively, with no other client's in between. */
  unbroken(spare: number = this.spare): number {
    let found = 0;
    for (let i = this.#slots.length - 1; i >= this.#head && found < spare; i--) {
      const slot = this.#slots[i] as Slot;
      if (slot.state === undefined) break;
      found += slot.left;
      if (slot.left !== slot.count || i === this.#head || !this.#joined(this.#slots[i - 1] as Slot, slot)) break;
    }
    // Sums of fractions are rounded.
    return found > spare - this.slack ? spare : found;
  }

  /** Whether the limit is unchanged since the last reservation here. */
  isLast(state: State): boolean {
    const last = this.#last();
    return last !== undefined && this.#joined(last, { state, count: 0 });
  }

  /**
   * Sets the limit's state after the last tokens were returned, as that of the last reservation: behind that there must be
   * no other client's. If all that are left were reserved consecutively (`whole`), they become one reservation made now.
   * If the store failed, the state is not the limit's.
   */
  rebase({ value, ts, degraded }: State & Pick<Decision, "degraded">, whole: boolean): void {
    const last = this.#last();
    if (last === undefined || degraded === true) return;
    last.state = { value, ts };
    last.at = paidAt(last.state, this.#config as Config);
    if (!whole) return;
    this.#slots = [{ ...last, count: this.tokens, left: this.tokens }];
    this.#head = 0;
  }

  /** Epoch ms, on the limiter's clock, at which the last reservation is due of those in the first `count` tokens. */
  end(count: number): number {
    let sum = this.tokens;
    for (let i = this.#slots.length - 1; i >= this.#head; i--) {
      const { at, left } = this.#slots[i] as Slot;
      if (sum <= count + this.slack) return at;
      sum -= left;
    }
    return -Infinity;
  }

  #last(): Slot | undefined {
    const { length } = this.#slots;
    // Not `at`, which older Hermes and QuickJS lack.
    return length > this.#head ? this.#slots[length - 1] : undefined;
  }

  /** Whether no other client took tokens between two reservations. */
  #joined({ state: before }: Slot, { state: after, count }: Pick<Slot, "state" | "count">): boolean {
    if (before === undefined || after === undefined || after.ts < before.ts) return false;
    return close(project(before, this.#config as Config, after.ts).value - count, after.value);
  }
}
