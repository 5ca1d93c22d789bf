import { NotAState } from "../limit/codec.ts";
import { checkFields, fieldTable, numberError } from "../limit/config.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { MAX_SKEW_MS } from "../engine/generated/bounds.ts";
import { InputError, isStoreError, messageOf, StoreError } from "../limit/errors.ts";
import type { AsyncStore, Call, Deadline } from "./contract.ts";
import { Turns, turnsOf } from "./turns.ts";

/** States by identity, inside one transaction of the host's own. */
export interface Transaction {
  /**
   * The state under this identity, or `null` where there is none. A table that cannot enforce one row per identity may
   * hold several: `join` returns the one state that they amount to, and `set` and `delete` must then remove the others.
   */
  get(id: string, join: (rows: readonly State[]) => State | null): Promise<State | null> | State | null;
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
   * Runs `body` in one transaction, atomically with respect to every other process: it may run it again after a
   * conflict, and then nothing of the run before is kept. Within this process the store runs the calls on one limit and
   * key one after another, so a transaction that several calls share is safe.
   */
  transaction<T>(body: (transaction: Transaction) => Promise<T>): Promise<T>;
  /**
   * The handle of a host's transaction that every `body` runs in (Prisma's or Drizzle's `tx`, Convex's `ctx.db`), where
   * `transaction` begins none of its own. The stores with the same handle run their calls on one limit and key one after
   * another. Such calls have no deadline and no `onStoreError`: an error rejects, and rolls the transaction back.
   */
  within?: object | undefined;
  /** The clock, epoch ms: the database's own where it has one. Default `Date.now`. */
  now?: (() => number) | undefined;
  /** Picks two of a limit's shards: a number from 0 up to, but not, 1. Default `Math.random`; a seeded one repeats a run. */
  random?: (() => number) | undefined;
}

const OPTIONS = fieldTable("name", "transaction", "within", "now", "random");

/**
 * A store over any database with transactions: the algebra runs here, between its `get` and its `set`.
 *
 * ```ts
 * const store = transactional({ name: "mine", transaction: (body) => db.transaction((tx) => body(statesIn(tx))) });
 * // Inside a transaction of yours:
 * const inside = transactional({ name: "mine", transaction: (body) => body(statesIn(tx)), within: tx });
 * ```
 *
 * Calls of this process on one limit and key run one after another. A call whose deadline passes while it waits is not
 * sent. A call that runs past its deadline is no longer waited for. Throws an `InputError` where an option is wrong.
 */
export function transactional(options: TransactionalOptions): AsyncStore {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "transactional");
  const { name, transaction, within, now: clock = Date.now, random = () => Math.random() } = options;
  if (typeof name !== "string" || name === "") throw new InputError("name", "a short name, for errors", name);
  if (typeof transaction !== "function") {
    throw new InputError("transaction", "a function that runs its argument in a transaction", transaction);
  }
  if (within !== undefined && (within === null || !["object", "function"].includes(typeof within))) {
    throw new InputError("within", "the handle of a transaction, an object", within);
  }
  if (typeof clock !== "function") throw new InputError("now", "a function that tells ms", clock);
  if (typeof random !== "function") throw new InputError("random", "a function that draws a number below 1", random);

  const turns = within === undefined ? new Turns() : turnsOf(within);

  function time(passed: number | undefined): number {
    const now: unknown = passed ?? clock();
    if (typeof now !== "number") throw numberError("now", now);
    return now;
  }

  async function read(tx: Transaction, { limit, key }: Place, shard: number | undefined, now: number): Promise<Found> {
    const id = limit.identity(key, shard);
    const parts = shard === undefined ? 1 : limit.policy.shards;
    const state = await tx.get(id, (rows) => joinRows(rows, limit.policy.capacity / parts, now));
    if (state === null || (Number.isFinite(state?.value) && Number.isFinite(state?.ts))) return state;
    throw new StoreError("what is stored is not a state", {
      store: name,
      operation: "read",
      identity: id,
      scope: "key",
    });
  }

  async function readShards(tx: Transaction, on: Place, now: number): Promise<Found[]> {
    const all: Found[] = [];
    for (let shard = 0; shard < on.limit.policy.shards; shard++) all.push(await read(tx, on, shard, now));
    return all;
  }

  /** One step on these limits and keys, after the earlier ones. */
  async function run<T>(
    operation: string,
    on: readonly Place[],
    deadline: Deadline,
    body: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    const ids = on.map(({ limit, key }) => limit.identity(key));
    try {
      return await turns.run(ids, () => transaction(body), deadline);
    } catch (error) {
      if (isStoreError(error)) throw error;
      const scope = error instanceof NotAState ? "key" : "store";
      throw new StoreError(messageOf(error), { store: name, operation, identity: ids.join(","), cause: error, scope });
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
      const before = await read(tx, call, undefined, now);
      const { decision, state } = limit.evaluate(before, call, now, { start });
      return { decision, writes: state === null || state === before ? [] : [write(undefined, state)] };
    }
    if (call.op === "take" || call.op === "check") {
      const pair = limit.pick(random());
      const first = await read(tx, call, pair[0], now);
      const second = await read(tx, call, pair[1], now);
      const { decision, which, state } = limit.better([first, second], call, now, start);
      const before = which === 0 ? first : second;
      if (decision.ok) {
        return { decision, writes: state === null || state === before ? [] : [write(pair[which], state)] };
      }
    }
    const all = await readShards(tx, call, now);
    const { decision, states } = limit.pool(all, call, now, start);
    return { decision, writes: states?.map((state, shard) => write(shard, state)) ?? [] };
  }

  return {
    name,
    sync: false,
    ...(within === undefined ? {} : { inTransaction: true }),
    decide: (call, now, deadline) =>
      run(call.op, [call], deadline, async (tx) => {
        const { decision, writes } = await plan(tx, call, time(now));
        for (const { id, state, fullAt } of writes) await tx.set(id, state, fullAt);
        return decision;
      }),
    decideAll: (calls, passed, deadline) =>
      run("limitAll", calls, deadline, async (tx) => {
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
    reset: (limit, key, deadline) =>
      run("reset", [{ limit, key }], deadline, async (tx) => {
        for (let shard = 0; shard < limit.policy.shards; shard++) await tx.delete(limit.identity(key, shard));
      }),
    getValue: (limit, key, passed, deadline) =>
      run("getValue", [{ limit, key }], deadline, async (tx) => {
        const now = time(passed);
        const on = { limit, key };
        if (limit.policy.shards === 1) {
          return limit.project(await read(tx, on, undefined, now), now, limit.start(key));
        }
        return limit.sum(await readShards(tx, on, now), now, limit.start(key));
      }),
  };
}

/** Of a call, the limit and key. */
type Place = Pick<Call, "limit" | "key">;
type Found = State | null;

interface Write {
  id: string;
  state: State;
  fullAt: number;
}

/**
 * The state that several rows under one identity amount to, or `null` of none. Concurrent calls that each found no row
 * have each started from a full state and inserted the rest, so the tokens taken are the sum of what the rows lack of
 * `capacity`. The result lacks that sum at the latest `ts`: without the refill between the rows' times, so it never
 * grants too much. (The least value would: ten rows of `capacity - 1` are ten tokens taken, not one.) A row from a clock
 * that was wrong is no state, as the algebra has it.
 */
function joinRows(rows: readonly State[], capacity: number, now: number): Found {
  if (rows.length < 2) return rows[0] ?? null;
  const sound = rows.filter(({ ts }) => !(ts - now > MAX_SKEW_MS));
  if (sound.length === 0) return null;
  const lacking = sound.reduce((sum, { value }) => sum + Math.max(capacity - value, 0), 0);
  return { value: capacity - lacking, ts: Math.max(...sound.map(({ ts }) => ts)) };
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
