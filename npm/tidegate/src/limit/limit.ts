import { refusal, decisionOf, refuse } from "../engine/answer.ts";
import { type Engine, engine } from "../engine/engine.ts";
import { KINDS, NONE, UNDECIDED, WRITES } from "../engine/generated/wire.ts";
import { releasing } from "../engine/release.ts";
import { type Cached, cached } from "./cached.ts";
import { type Config, numbersOf, startNumber } from "./config.ts";
import type { Decision, Operation, State } from "./decision.ts";
import { type Evaluation, Evaluator, flagsOf, LOOK } from "./evaluator.ts";

export type { Evaluation } from "./evaluator.ts";

/** The decision on a lease. */
export interface Spent {
  readonly decision: Decision;
  /** Leased tokens that are left. */
  readonly hand: number;
  /** Where `false`, only the store can decide; the decision is the one where it holds the rest. */
  readonly settled: boolean;
}

const release = /* @__PURE__ */ releasing<number>((handle) => engine().wasm.limit_drop(handle));

/** A limit of a store: an {@link Evaluator} whose keys have window grids of their own, with leases and shards. */
export class Limit extends Evaluator {
  readonly #engine: Engine;
  /** Its number in the engine, where a call needs its name, or a list of states. */
  #registered: number | undefined;

  /** Checks name and config; throws an `InputError` that names field, value and rule. */
  constructor(name: string, config: Config) {
    const loaded = engine();
    super(name, config, loaded);
    this.#engine = loaded;
  }

  get #handle(): number {
    if (this.#registered === undefined) {
      this.#registered = this.register(NONE);
      release(this, this.#registered);
    }
    return this.#registered;
  }

  /** Registers the limit with the engine's table of that number. Returns its own number. */
  register(table: number): number {
    const length = this.#engine.writeKey(this.name);
    const kind = KINDS.indexOf(this.policy.kind);
    const made = this.#engine.wasm.limit_new(table, length, kind, ...numbersOf(this.policy));
    if (made < 0) throw refusal(-made, this.policy);
    return made;
  }

  /** `name`, then `/shard` where there are several, then `:key` where there is one. No two pairs of name and key have the same. */
  identity(key: string | undefined, shard?: number): string {
    const part = shard === undefined || this.policy.shards === 1 ? this.name : `${this.name}/${shard}`;
    return key === undefined ? part : `${part}:${key}`;
  }

  /**
   * Where the key's window grid starts: the policy's `start`, else derived from name and key. Infinite: at the first request.
   * 0 for a token bucket.
   */
  start(key: string | undefined): number {
    const { kind, start } = this.policy;
    if (kind === "token bucket") return 0;
    if (start !== undefined) return startNumber(start);
    // First, as registering writes the name where the key goes.
    const handle = this.#handle;
    return this.#engine.wasm.start(handle, this.#engine.writeKey(key));
  }

  /** The denial of a request that no wait would help, which is decided before any state is read; else nothing. */
  never(call: Operation, now: number): Decision | undefined {
    if (call.count <= this.policy.capacity && !call.reserve) return undefined;
    // A fresh key is full: what it denies for its capacity, every state does.
    const { decision } = this.evaluate(null, call, now);
    return decision.reason === "exceeds capacity" ? decision : undefined;
  }

  /** Takes leased tokens, or denies where the store, whose state was last `{ value, ts }`, cannot hold the rest. */
  spend({ value, ts }: State, hand: number, count: number, now: number, start: number): Spent {
    const status = this.#engine.wasm.lease_spend(this.#handle, start, value, ts, hand, now, count);
    refuse(status, { count, now, value, ts });
    const { numbers } = this.#engine;
    const decision = decisionOf(status, numbers, this.policy, Math.floor(now));
    return { decision, hand: numbers[5] as number, settled: (status & UNDECIDED) === 0 };
  }

  /** Two distinct shards, from one uniform random number in [0, 1). */
  pick(random: number): [number, number] {
    const others = this.policy.shards - 1;
    const pairs = this.policy.shards * others;
    const pair = Math.min(Math.floor(random * pairs), pairs - 1);
    const first = Math.floor(pair / others);
    const second = pair % others;
    return [first, second >= first ? second + 1 : second];
  }

  /**
   * One call on the fuller of two shards' states: which it is (0 or 1), the decision, and that shard's new state. The
   * decision's `value` estimates the whole limit's from the two. One shard lends nothing: where the decision is a denial,
   * only {@link pool} decides.
   */
  better(
    pair: readonly [State | null, State | null],
    call: Operation,
    now: number,
    start: number,
  ): Evaluation & { which: 0 | 1 } {
    const at = { start, shard: true };
    const [a, b] = [this.look(pair[0], now, at), this.look(pair[1], now, at)];
    const which = b.value > a.value ? 1 : 0;
    const other = which === 1 ? a : b;
    const { decision, state } = this.evaluate(pair[which], { ...call, reserve: false }, now, at);
    const value = (decision.value + other.value) * (this.policy.shards / 2);
    const whole = {
      ...decision,
      value,
      ts: Math.max(decision.ts, other.ts),
      remaining: Math.max(Math.floor(value), 0),
      resetAt: Math.max(decision.resetAt, other.resetAt),
    };
    return { decision: whole, which, state };
  }

  /** One call on all shards' states as one pool: the decision, and all their new states where they are to be written. */
  pool(
    states: readonly (State | null)[],
    call: Operation,
    now: number,
    start: number,
  ): { decision: Decision; states: State[] | undefined } {
    this.#stage(states);
    const { wasm } = this.#engine;
    const status = wasm.pool_decide(this.#handle, states.length, start, now, call.count, flagsOf(call));
    refuse(status, { count: call.count, for: call.count, now });
    const decision = decisionOf(status, this.#engine.numbers, this.policy, Math.floor(now));
    if ((status & WRITES) === 0) return { decision, states: undefined };
    const written = this.#engine.doubles(wasm.pool_at(states.length), states.length * 2);
    return {
      decision,
      states: states.map((_, i) => ({ value: written[2 * i] as number, ts: written[2 * i + 1] as number })),
    };
  }

  /** The two numbers of all shards together. */
  sum(states: readonly (State | null)[], now: number, start: number): State {
    const { value, ts } = this.pool(states, LOOK, now, start).decision;
    return { value, ts };
  }

  #stage(states: readonly (State | null)[]): void {
    const place = this.#engine.doubles(this.#engine.wasm.pool_at(states.length), states.length * 2);
    for (const [i, state] of states.entries()) {
      place[2 * i] = state === null ? Number.NaN : state.value;
      place[2 * i + 1] = state === null ? 0 : state.ts;
    }
  }
}

/** The limits of configs that are passed with each call. */
export const callLimits: Cached<Limit> = /* @__PURE__ */ cached((name, config) => new Limit(name, config));
