import { checkFields, fieldTable, numberError } from "../config.ts";
import type { AllDecision, Decision, State } from "../decision.ts";
import { InputError, isStoreError, StoreError } from "../errors.ts";
import type { Limit } from "../limit.ts";
import type { AsyncStore, Call } from "../store.ts";

/** States by identity, inside one transaction of the host's own. */
export interface Transaction {
  /** The state under this identity, or `null` where there is none. */
  get(id: string): Promise<State | null> | State | null;
  /** Keeps a state. `fullAt` is epoch ms from which it may be dropped: a store with expiry sets it to that. */
  set(id: string, state: State, fullAt: number): Promise<void> | void;
  /** Forgets a state. */
  delete(id: string): Promise<void> | void;
}

/** What {@link transactional} needs. */
export interface TransactionalOptions {
  /** A short name, for errors. */
  name: string;
  /**
   * Runs `body` in one transaction, atomically with respect to every other: it may run it again after a conflict, and
   * then nothing of the run before is kept.
   */
  transaction<T>(body: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** The clock, epoch ms: the database's own where it has one. Default `Date.now`. */
  now?: (() => number) | undefined;
  /** Picks two of a limit's shards: a number from 0 up to, but not, 1. Default `Math.random`; a seeded one repeats a run. */
  random?: (() => number) | undefined;
}

const OPTIONS = fieldTable("name", "transaction", "now", "random");

/**
 * A store over any database with transactions: the algebra runs here, between its `get` and its `set`.
 *
 * ```ts
 * const store = transactional({ name: "mine", transaction: (body) => db.transaction((tx) => body(statesIn(tx))) });
 * ```
 */
export function transactional(options: TransactionalOptions): AsyncStore {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "transactional");
  const { name, transaction, now: clock = Date.now, random = () => Math.random() } = options;
  if (typeof name !== "string" || name === "") throw new InputError("name", "a short name, for errors", name);
  if (typeof transaction !== "function") {
    throw new InputError("transaction", "a function that runs its argument in a transaction", transaction);
  }
  if (typeof clock !== "function") throw new InputError("now", "a function that tells ms", clock);
  if (typeof random !== "function") throw new InputError("random", "a function that draws a number below 1", random);

  function time(passed: number | undefined): number {
    const now: unknown = passed ?? clock();
    if (typeof now !== "number") throw numberError("now", now);
    return now;
  }

  async function read(tx: Transaction, id: string): Promise<State | null> {
    const state = await tx.get(id);
    if (state === null || (Number.isFinite(state?.value) && Number.isFinite(state?.ts))) return state;
    throw new StoreError("what is stored is not a state", { store: name, operation: "read", identity: id });
  }

  async function run<T>(operation: string, identity: string, body: (tx: Transaction) => Promise<T>): Promise<T> {
    try {
      return await transaction(body);
    } catch (error) {
      if (isStoreError(error)) throw error;
      const what = error instanceof Error ? error.message : String(error);
      throw new StoreError(what, { store: name, operation, identity, cause: error });
    }
  }

  /** What a call answers, and the states it would write. */
  async function plan(tx: Transaction, call: Call, now: number): Promise<{ decision: Decision; writes: Write[] }> {
    const { limit, key } = call;
    const { shards } = limit.policy;
    const start = limit.start(key);
    const write = (shard: number | undefined, state: State): Write => ({
      id: limit.identity(key, shard),
      state,
      fullAt: limit.fullAt(state, now, { start, shard: shard !== undefined }),
    });
    if (shards === 1) {
      const before = await read(tx, limit.identity(key));
      const { decision, state } = limit.evaluate(before, call, now, { start });
      return { decision, writes: state === null || state === before ? [] : [write(undefined, state)] };
    }
    if (call.op === "take" || call.op === "check") {
      const pair = limit.pick(random());
      const first = await read(tx, limit.identity(key, pair[0]));
      const second = await read(tx, limit.identity(key, pair[1]));
      const { decision, which, state } = limit.better([first, second], call, now, start);
      const before = which === 0 ? first : second;
      if (decision.ok) {
        return { decision, writes: state === null || state === before ? [] : [write(pair[which], state)] };
      }
    }
    const all: (State | null)[] = [];
    for (let shard = 0; shard < shards; shard++) all.push(await read(tx, limit.identity(key, shard)));
    const { decision, states } = limit.pool(all, call, now, start);
    return { decision, writes: states?.map((state, shard) => write(shard, state)) ?? [] };
  }

  return {
    name,
    sync: false,
    decide: (call, now) =>
      run(call.op, call.limit.identity(call.key), async (tx) => {
        const { decision, writes } = await plan(tx, call, time(now));
        for (const { id, state, fullAt } of writes) await tx.set(id, state, fullAt);
        return decision;
      }),
    decideAll: (calls, passed) =>
      run("limitAll", calls.map((call) => call.limit.identity(call.key)).join(","), async (tx) => {
        const now = time(passed);
        const asked = new Map<string, number>();
        const limits = calls.map((call) => call.limit.identity(call.key));
        const plans = [];
        for (const [i, call] of calls.entries()) {
          // Two requests on one state ask for their sum, of what is stored.
          const id = limits[i] as string;
          const count = (asked.get(id) ?? 0) + call.count;
          asked.set(id, count);
          plans.push(await plan(tx, { ...call, count }, now));
        }
        const answer = settle(
          plans.map(({ decision }) => decision),
          now,
        );
        if (answer.ok) {
          // The last of those on one limit and key has their sum: of several shards, the others may have named others.
          const last = new Map(plans.map((plan, i) => [limits[i], plan]));
          for (const { id, state, fullAt } of [...last.values()].flatMap(({ writes }) => writes))
            await tx.set(id, state, fullAt);
        }
        return answer;
      }),
    reset: (limit: Limit, key) =>
      run("reset", limit.identity(key), async (tx) => {
        for (let shard = 0; shard < limit.policy.shards; shard++) await tx.delete(limit.identity(key, shard));
      }),
    getValue: (limit: Limit, key, passed) =>
      run("getValue", limit.identity(key), async (tx) => {
        const now = time(passed);
        const { shards } = limit.policy;
        if (shards === 1) return limit.project(await read(tx, limit.identity(key)), now, limit.start(key));
        const all: (State | null)[] = [];
        for (let shard = 0; shard < shards; shard++) all.push(await read(tx, limit.identity(key, shard)));
        return limit.sum(all, now, limit.start(key));
      }),
  };
}

interface Write {
  id: string;
  state: State;
  fullAt: number;
}

/** One answer from those of all: denied where one is, and its time the latest of those that settle it. */
export function settle(decisions: Decision[], now: number): AllDecision {
  const ok = decisions.every((decision) => decision.ok);
  const times = decisions.filter((decision) => decision.ok === ok).map((decision) => decision.retryAt);
  const known = times.filter((time) => time !== undefined);
  const never = known.length === 0 || (!ok && known.length < times.length);
  const retryAt = never ? undefined : Math.max(...known);
  return { ok, retryAt, retryAfter: retryAt === undefined ? undefined : retryAt - Math.floor(now), decisions };
}
