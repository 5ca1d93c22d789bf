/** The algebra between the reads and the writes of one atomic step: every store that decides in this process runs it. */
import { MAX_SKEW_MS } from "../engine/generated/bounds.ts";
import { NotAState } from "../limit/codec.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { show } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import { combined } from "../limit/combined.ts";
import type { Sharding } from "../limit/shards.ts";
import { layers } from "../limiter/layers.ts";
import type { AsyncStore, Call, Deadline, Key, Now } from "./contract.ts";
import { failure, idsOf, type Target } from "./failure.ts";
import type { Step } from "./sharded.ts";

/** States by identity, inside one atomic step: a transaction of the host, or a compare-and-swap. */
export interface Transaction {
  /**
   * The state under this identity, or `null` if there is none. A table that cannot enforce one row per identity may
   * hold several. `join` returns the one state that they amount to; `set` and `delete` must then remove the others.
   */
  get(id: string, join: (rows: readonly State[]) => State | null): Promise<State | null> | State | null;
  /**
   * Writes a state. It may be dropped from `fullAt` on, epoch ms of the clock that reads `now`: a store with expiry keeps it
   * for `fullAt - now` ms.
   */
  set(id: string, state: State, fullAt: number, now: number): Promise<void> | void;
  /** Deletes a state. */
  delete(id: string): Promise<void> | void;
}

/**
 * Ms for which a full state is kept: by then it is full by the clocks of other processes too. Longer than any step, so
 * that no step that began before a reset outlives its row.
 */
export const SLACK = 60_000;

/** What a call decides, and the states that it would write. */
interface Plan {
  readonly decision: Decision;
  readonly writes: readonly (readonly [shard: number | undefined, state: State])[];
}

/** The operations of a store, inside one transaction. */
export class Steps {
  readonly #states: Transaction;
  readonly #store: string;
  readonly #now: number;
  readonly #sharding: Sharding | undefined;

  /** Without `sharding`, a limit with `shards` is one row. */
  constructor(states: Transaction, store: string, now: number, sharding?: Sharding) {
    this.#states = states;
    this.#store = store;
    this.#now = now;
    this.#sharding = sharding;
  }

  async decide(call: Call): Promise<Decision> {
    const { decision, writes } = await this.#plan(call);
    await this.#write(call, writes);
    return decision;
  }

  async decideAll(calls: readonly Call[]): Promise<AllDecision> {
    const plans: Plan[] = [];
    for (const call of calls) plans.push(await this.#plan(call));
    const decisions = plans.map(({ decision }) => decision);
    const all = combined(decisions, this.#now);
    if (all.ok) for (const [i, call] of calls.entries()) await this.#write(call, (plans[i] as Plan).writes);
    return all;
  }

  /** One call on one shard, under the shard's own rule: rate, capacity and reserve divided by the number of shards. */
  async decideShard(call: Call, shard: number): Promise<Step> {
    const before = await this.#read(call, shard);
    const { decision, writes } = this.#evaluate(before, call, shard);
    await this.#write(call, writes);
    return { before, decision, now: this.#now };
  }

  /** Deletes the limit on this key; with `shard`, one shard of it. */
  async reset(limit: Limit, key: Key, shard?: number): Promise<void> {
    if (shard !== undefined) return this.#states.delete(limit.identity(key, shard));
    if (this.#shardingOf(limit) === undefined) return this.#states.delete(limit.identity(key));
    for (let each = 0; each < limit.policy.shards; each++) await this.#states.delete(limit.identity(key, each));
  }

  async getValue(limit: Limit, key: Key): Promise<State> {
    const start = limit.start(key);
    const sharding = this.#shardingOf(limit);
    if (sharding === undefined) return limit.project(await this.#read({ limit, key }), this.#now, start);
    return sharding.sum(limit, await this.#readShards({ limit, key }), this.#now, start);
  }

  /** Absent if the limit is one row. */
  #shardingOf(limit: Limit): Sharding | undefined {
    return limit.policy.shards > 1 ? this.#sharding : undefined;
  }

  async #plan(call: Call): Promise<Plan> {
    const { limit, key, op } = call;
    const never = limit.never(call, this.#now);
    if (never !== undefined) return { decision: never, writes: [] };
    const sharding = this.#shardingOf(limit);
    if (sharding === undefined) return this.#evaluate(await this.#read(call), call, undefined);
    const start = limit.start(key);
    if (op === "take" || op === "check") {
      const pair = sharding.pick(limit);
      const states = [await this.#read(call, pair[0]), await this.#read(call, pair[1])] as const;
      const { decision, which, state } = sharding.better(limit, states, call, this.#now, start);
      if (decision.ok) {
        return { decision, writes: state === null || state === states[which] ? [] : [[pair[which], state]] };
      }
    }
    const { decision, states } = sharding.pool(limit, await this.#readShards(call), call, this.#now, start);
    return { decision, writes: states?.map((state, shard) => [shard, state]) ?? [] };
  }

  #evaluate(before: State | null, call: Call, shard: number | undefined): Plan {
    const at = { start: call.limit.start(call.key), shard: shard !== undefined };
    const { decision, state } = call.limit.evaluate(before, call, this.#now, at);
    return { decision, writes: state === null || state === before ? [] : [[shard, state]] };
  }

  async #read({ limit, key }: Target, shard?: number): Promise<State | null> {
    const id = limit.identity(key, shard);
    const capacity = limit.policy.capacity / (shard === undefined ? 1 : limit.policy.shards);
    try {
      const state = await this.#states.get(id, (rows) => joinRows(rows, capacity, this.#now));
      if (state === null || (Number.isFinite(state?.value) && Number.isFinite(state?.ts))) return state;
      throw new NotAState(`what is stored must be { value, ts }, or null if nothing is; got ${show(state)}`);
    } catch (error) {
      // Names this row alone, even if the step has others.
      throw error instanceof NotAState
        ? failure(error, { store: this.#store, operation: "read", identity: id })
        : error;
    }
  }

  async #readShards(target: Target): Promise<(State | null)[]> {
    const all: (State | null)[] = [];
    for (let shard = 0; shard < target.limit.policy.shards; shard++) all.push(await this.#read(target, shard));
    return all;
  }

  async #write({ limit, key }: Target, writes: Plan["writes"]): Promise<void> {
    for (const [shard, state] of writes) {
      const fullAt = limit.fullAt(state, this.#now, { start: limit.start(key), shard: shard !== undefined });
      await this.#states.set(limit.identity(key, shard), state, fullAt, this.#now);
    }
  }
}

type StepArguments<T> = [targets: readonly Target[], now: Now, deadline: Deadline, body: (steps: Steps) => Promise<T>];

/** Runs one atomic step on these limits and keys, or shards. */
export type Run = <T>(...step: StepArguments<T>) => Promise<T>;

/** Runs the step of an operation of this store: a failure becomes a `StoreError` that names it and the identities. */
export function stepBy(name: string, run: Run): <T>(operation: string, ...step: StepArguments<T>) => Promise<T> {
  return async (operation, ...step) => {
    try {
      return await run(...step);
    } catch (error) {
      throw failure(error, { store: name, operation, identity: idsOf(step[0]).join(",") });
    }
  };
}

/** The store whose atomic steps `run` runs. */
export function storeOf(name: string, run: Run): AsyncStore {
  const step = stepBy(name, run);
  return {
    name,
    sync: false,
    layers,
    decide: (call, now, deadline) => step(call.op, [call], now, deadline, (steps) => steps.decide(call)),
    decideAll: (calls, now, deadline) => step("limitAll", calls, now, deadline, (steps) => steps.decideAll(calls)),
    reset: (limit, key, deadline) =>
      step("reset", [{ limit, key }], undefined, deadline, (steps) => steps.reset(limit, key)),
    getValue: (limit, key, now, deadline) =>
      step("getValue", [{ limit, key }], now, deadline, (steps) => steps.getValue(limit, key)),
  };
}

/**
 * The state that several rows under one identity amount to, or `null` of none. Concurrent calls that each found no row
 * have each started from a full state and inserted the rest. So the tokens taken are the sum of what the rows lack of
 * `capacity`: ten rows of `capacity - 1` are ten tokens taken, not one. The result lacks that sum at the latest `ts`. The
 * refill between the rows' times is left out, so it never grants too much. A row from a clock that was wrong is not a state, as
 * in the algebra.
 */
function joinRows(rows: readonly State[], capacity: number, now: number): State | null {
  if (rows.length < 2) return rows[0] ?? null;
  const sound = rows.filter(({ ts }) => !(ts - now > MAX_SKEW_MS));
  if (sound.length === 0) return null;
  const lacking = sound.reduce((sum, { value }) => sum + Math.max(capacity - value, 0), 0);
  return { value: capacity - lacking, ts: Math.max(...sound.map(({ ts }) => ts)) };
}
