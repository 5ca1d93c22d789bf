/**
 * State in Deno KV: exact among all processes on one database, by each process's clock.
 *
 * @module
 */
import { checkFields, fieldTable } from "../limit/config.ts";
import { InputError, showInstead } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call, Deadline } from "./contract.ts";
import type { Kv, KvLike } from "./deno-kv/kv.ts";
import { transaction } from "./deno-kv/transaction.ts";
import { transactional } from "./transactional.ts";
import { Turns } from "./turns.ts";

export type { KvLike } from "./deno-kv/kv.ts";

/** Settings of {@link denoKv}. */
export interface DenoKvOptions {
  /** First part of every key; default `"tidegate"`. Limiters with the same one share their states. */
  prefix?: string | undefined;
}

const OPTIONS = fieldTable("prefix");
const NAME = "deno-kv";
/** As many entries as one atomic step can check. */
const MAX_STATES = 100;

/**
 * A store in a Deno KV database: one atomic check-and-set a call, `limitAll` included.
 *
 * ```ts
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: denoKv(await Deno.openKv()) });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * A state is 16 bytes under `[prefix, identity]` and expires when it is full. Calls on one key wait for each other in
 * this process; against other processes a call that lost is made again, and so it is while the file is locked. A call
 * may touch 100 states at most (a limit has one for each shard): more reject with an `InputError`, before anything is
 * read. Calls reject with a `StoreError` where the database fails. Throws an `InputError` where an argument is wrong.
 */
export function denoKv(kv: KvLike, options: DenoKvOptions = {}): AsyncStore {
  if (typeof kv !== "object" || kv === null || typeof kv.get !== "function" || typeof kv.atomic !== "function") {
    throw new InputError("kv", "an open database, such as await Deno.openKv()", kv, showInstead(kv));
  }
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "denoKv");
  const { prefix = "tidegate" } = options;
  if (typeof prefix !== "string") throw new InputError("prefix", "a string", prefix);
  const turns = new Turns();

  /** The step on all those limits, in its turn. */
  async function step<T>(
    on: readonly Pick<Call, "limit" | "key">[],
    passed: number | undefined,
    deadline: Deadline,
    body: Step<T>,
  ): Promise<T> {
    const states = on.reduce((sum, { limit }) => sum + limit.policy.shards, 0);
    if (states > MAX_STATES) {
      const rule = `at most ${MAX_STATES} in all that one call touches: Deno KV checks no more in one atomic step`;
      throw new InputError("shards", rule, states);
    }
    const ids = [...new Set(on.map(({ limit, key }) => limit.identity(key)))];
    const inTurn = (): Promise<T> => {
      const now = passed ?? Date.now();
      const run = <R>(work: Parameters<typeof transaction<R>>[3]): Promise<R> =>
        transaction(kv as unknown as Kv, [prefix], now, work);
      return body(transactional({ name: NAME, transaction: run }), now);
    };
    return turns.run(ids, inTurn, deadline);
  }

  const of = (limit: Limit, key: string | undefined): Pick<Call, "limit" | "key">[] => [{ limit, key }];
  return {
    name: NAME,
    sync: false,
    decide: (call, now, deadline) => step([call], now, deadline, (store, at) => store.decide(call, at)),
    decideAll: (calls, now, deadline) => step(calls, now, deadline, (store, at) => store.decideAll(calls, at)),
    reset: (limit, key, deadline) => step(of(limit, key), undefined, deadline, (store) => store.reset(limit, key)),
    getValue: (limit, key, now, deadline) =>
      step(of(limit, key), now, deadline, (store, at) => store.getValue(limit, key, at)),
  };
}

type Step<T> = (store: AsyncStore, now: number) => Promise<T>;
