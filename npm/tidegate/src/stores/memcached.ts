/**
 * State in Memcached: exact among all processes while the server keeps it, by each process's clock.
 *
 * @module
 */
import { decodeText, encodeText, NotAState } from "../limit/codec.ts";
import { checkTable, durationFrom, msOf } from "../limit/checks.ts";
import { type Duration, LONGEST_TIMER } from "../limit/duration.ts";
import { InputError } from "../limit/errors.ts";
import type { Decision } from "../limit/decision.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call, Deadline, Key, Now } from "./contract.ts";
import { connectionTo, exptimeOf, keyOf, type MemcachedLike } from "./memcached/client.ts";
import * as sharded from "./sharded.ts";
import { connectedBy } from "./connecting.ts";
import { idsOf } from "./failure.ts";
import { type Run, stepBy, storeOf } from "./steps.ts";
import { combined } from "../limit/combined.ts";
import type { Change, Swappable, Write } from "./swap/database.ts";
import { swapping } from "./swap.ts";

export type { CallbackMemcached, MemcachedLike, PromiseMemcached } from "./memcached/client.ts";

/** Settings of {@link memcached}. */
export interface MemcachedOptions {
  /**
   * First part of every key: 1 to 64 characters of `A-Z a-z 0-9 _ . -`; default `"tidegate"`. Limiters with the same
   * one share their states.
   */
  prefix?: string | undefined;
  /**
   * Most ms of one step on a state, its attempts included: an integer from 1 to 2147483647, or a string such as `"1s"`;
   * default 1000. A step also ends when the `timeout` of every call in it has passed, and then sends nothing more; a write
   * that was sent may be carried out later.
   */
  stepTimeout?: Duration | undefined;
}

const NAME = "memcached";
const OPTIONS = {
  prefix: {
    expects: "1 to 64 characters of A-Z a-z 0-9 _ . -",
    accepts: (prefix: unknown) => typeof prefix === "string" && /^[\w.-]{1,64}$/.test(prefix),
  },
  stepTimeout: durationFrom(1, LONGEST_TIMER, true),
};

/**
 * A store in Memcached, by compare-and-swap: a `gets` and, if something is taken, a `cas` or `add`; both are repeated if another
 * process was faster. Concurrent calls of this process on a key share them.
 *
 * ```ts
 * import Memcached from "memcached"; // or MemcacheClient of "memcache-client"
 *
 * const store = memcached(new Memcached("localhost:11211", { retry: 1000, failures: 1e6 }));
 * const limits = defineLimits({ search: { kind: "token bucket", rate: 5, period: MINUTE } }, { store });
 * const { ok } = await limits.limit("search", { key: userId });
 * ```
 * Memcached is a cache: it evicts keys when it is full, and loses all at a restart. **A key that it evicts starts full**: its
 * client gets at most one `capacity` more, each time. Use another store for anything that must not be lost, such as logins or
 * payments. A state expires a minute after it is full. With several servers, the client chooses the server of a key: every
 * process must list the same servers.
 * Memcached has no clock that a client can read, so each process's own clock decides. If two clocks differ by a second, a limit
 * once grants the tokens of one more second. Each of a limit's `shards` has its own key. There is no atomic step on several
 * keys: `limitAll` and `checkAll` on more than one reject with an `InputError`, before anything is read.
 * Calls reject with a `StoreError` if the server fails, holds what is not a state, or sends no versions (`-C`). Throws
 * an `InputError` if an argument is wrong.
 */
export function memcached(client: MemcachedLike, options: MemcachedOptions = {}): AsyncStore {
  const connection = connectionTo(client);
  checkTable("memcached", options, OPTIONS);
  const { prefix = "tidegate", stepTimeout = 1000 } = options;

  const database: Swappable<string | undefined> = {
    name: NAME,
    stepTimeout: msOf(stepTimeout),
    // Every step is on one identity.
    async read([id]) {
      const found = await connection.find(keyOf(prefix, id as string));
      return [found ?? { value: undefined, version: undefined }];
    },
    decode(value) {
      if (typeof value !== "string") throw new NotAState("the client returned a value that is not text");
      return decodeText(value);
    },
    async swap(changes) {
      const [{ id, seen, write }] = changes as [Change<string | undefined>];
      const key = keyOf(prefix, id);
      const { state, dropIn } = write as Write;
      if (state === null) return connection.delete(key).then(() => true);
      const exptime = exptimeOf(dropIn, Date.now());
      const version = seen?.version;
      if (version === undefined) return connection.add(key, encodeText(state), exptime);
      return connection.swap(key, encodeText(state), exptime, version);
    },
  };

  const { serverOf } = connection;
  const runs = new Map<string, Run>();
  /** Each server has its own steps: those on one that does not answer hold up none on the others. */
  const runOn = (server: string): Run => {
    const run = runs.get(server) ?? swapping(database);
    runs.set(server, run);
    return run;
  };
  const run: Run = (targets, ...step) => {
    const server = serverOf?.(keyOf(prefix, idsOf(targets)[0] as string)) ?? "";
    return runOn(server)(targets, ...step);
  };

  const store = storeOf(NAME, run);
  const step = stepBy(NAME, run);
  const shards: sharded.Shards = {
    step: (call, shard, now, deadline) =>
      step(call.op, [{ ...call, shard }], now, deadline, (steps) => steps.decideShard(call, shard)),
  };
  const areApart = ({ policy }: Limit): boolean => policy.shards > 1;
  const decide = async (call: Call, now: Now, deadline: Deadline): Promise<Decision> => {
    if (!areApart(call.limit)) return store.decide(call, now, deadline);
    return call.limit.never(call, now ?? Date.now()) ?? sharded.decide(shards, call, now, deadline);
  };

  return connectedBy(() => connection.connect(keyOf(prefix, "")), {
    ...store,
    ...(serverOf && {
      nodeOf: (limit: Limit, key: Key) =>
        areApart(limit) ? "the servers of all shards" : serverOf(keyOf(prefix, limit.identity(key))),
    }),
    decide,
    async reset(limit, key, deadline) {
      const resetOne = (shard: number) =>
        step("reset", [{ limit, key, shard }], undefined, deadline, (steps) => steps.reset(limit, key, shard));
      await Promise.all(sharded.shardsOf(limit).map(resetOne));
    },
    getValue: (limit, key, now, deadline) =>
      areApart(limit) ? sharded.getValue(shards, limit, key, now, deadline) : store.getValue(limit, key, now, deadline),
    async decideAll(calls, now, deadline) {
      const [call] = calls as [Call];
      if (calls.length > 1) {
        const rule = "one request on Memcached, which has no atomic step on several keys";
        throw new InputError("requests", rule, calls, `${calls.length}`);
      }
      const decision = await decide(call, now, deadline);
      return combined([decision], decision.now);
    },
  });
}
