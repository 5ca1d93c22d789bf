/**
 * State in Memcached: exact among all processes while the server keeps it, by each process's clock.
 *
 * @module
 */
import { NotAState } from "../limit/codec.ts";
import { checkFields, fieldTable } from "../limit/config.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { InputError, isInputError, messageOf, StoreError } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call } from "./contract.ts";
import { linkTo, type MemcachedLike } from "./memcached/client.ts";
import { keyOf } from "./memcached/key.ts";
import { type Asked, Line, type Told } from "./memcached/line.ts";
import * as spread from "./spread.ts";
import { settle } from "./transactional.ts";

export type { CallbackMemcached, MemcachedLike, PromiseMemcached } from "./memcached/client.ts";

/** Settings of {@link memcached}. */
export interface MemcachedOptions {
  /**
   * First part of every key: 1 to 64 characters of `A-Z a-z 0-9 _ . -`; default `"tidegate"`. Limiters with the same
   * one share their states.
   */
  prefix?: string | undefined;
  /**
   * ms that one step on a state may take, its repetitions included: a whole number from 1 to 2147483647; default 1000.
   * How long a caller waits is the limiter's `timeout`.
   */
  stepTimeout?: number | undefined;
}

const OPTIONS = fieldTable("prefix", "stepTimeout");
const NAME = "memcached";
const PREFIX = /^[\w.-]{1,64}$/;
const TIMEOUT_MOST = 2 ** 31 - 1;

/**
 * A store in Memcached, by compare-and-swap: a `gets` and, where something is taken, a `cas` or `add`; again where
 * another process was faster. Calls of this process that meet on a key share both.
 *
 * ```ts
 * import Memcached from "memcached"; // or MemcacheClient of "memcache-client"
 *
 * const store = memcached(new Memcached("localhost:11211"));
 * const limits = defineLimits({ search: { kind: "token bucket", rate: 5, period: MINUTE } }, { store });
 * const { ok } = await limits.limit("search", { key: userId });
 * ```
 *
 * Memcached is a cache: it evicts when it is full, and forgets at a restart. **A state that it drops is full again**, so
 * its client gets at most one `capacity` more, each time; what must not be forgotten (logins, money) belongs in another
 * store. A state is dropped a minute after it is full. Several servers are the client's to choose between: every
 * process must name the same.
 *
 * Memcached tells no clock, so each process's own is used: clocks that differ by a second let a limit grant a second's
 * tokens more, once. `shards` are taken from in parts, each in its own key. `limitAll` and `checkAll` of more than one
 * request reject with an `InputError`, before anything is read: there is no atomic step on several keys. Calls reject
 * with a `StoreError` where the server fails, holds what is not a state, or tells no versions (`-C`). Throws an
 * `InputError` where an argument is wrong.
 */
export function memcached(client: MemcachedLike, options: MemcachedOptions = {}): AsyncStore {
  const link = linkTo(client);
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "memcached");
  const { prefix = "tidegate", stepTimeout = 1000 } = options;
  if (typeof prefix !== "string" || !PREFIX.test(prefix)) {
    throw new InputError("prefix", "1 to 64 characters of A-Z a-z 0-9 _ . -", prefix);
  }
  if (!Number.isInteger(stepTimeout) || stepTimeout < 1 || stepTimeout > TIMEOUT_MOST) {
    throw new InputError("stepTimeout", `a whole number of ms from 1 to ${TIMEOUT_MOST}`, stepTimeout);
  }
  const lines = new Map<string, Line>();

  /** Tells which store failed, and on what. */
  async function on<T>(operation: string, identity: string, step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      if (isInputError(error)) throw error;
      const scope = error instanceof NotAState ? "key" : "store";
      throw new StoreError(messageOf(error), { store: NAME, operation, identity, cause: error, scope });
    }
  }

  function ask(identity: string, asked: Asked, operation: string = asked.op): Promise<Told> {
    let line = lines.get(identity);
    if (line === undefined) {
      line = new Line(link, keyOf(prefix, identity), stepTimeout);
      lines.set(identity, line);
      void line.run(() => lines.delete(identity));
    }
    return on(operation, identity, line.ask(asked));
  }

  const shards: spread.Shards = {
    step: ({ key, shard, ...asked }, now) => ask(asked.limit.identity(key, shard), { ...asked, shard: true, now }),
  };

  const look = { op: "check", count: 0, reserve: false, shard: false } as const;

  async function decide(call: Call, now: number | undefined): Promise<Decision> {
    const { limit, key, op, count, reserve } = call;
    const start = limit.start(key);
    const never = limit.never(call, now ?? Date.now());
    if (never !== undefined) return never;
    if (limit.policy.shards > 1) return spread.decide(shards, call, start, now);
    return (await ask(limit.identity(key), { op, limit, start, count, reserve, shard: false, now })).decision;
  }

  const { serverOf } = link;
  const nodes: Pick<AsyncStore, "nodeOf"> =
    serverOf === undefined
      ? {}
      : {
          nodeOf: (limit, key) =>
            limit.policy.shards > 1 ? "the servers of all shards" : serverOf(keyOf(prefix, limit.identity(key))),
        };

  return {
    name: NAME,
    sync: false,
    ...nodes,
    decide,
    async decideAll(calls, now): Promise<AllDecision> {
      const [call] = calls;
      if (call === undefined || calls.length > 1) {
        const rule = "one request on Memcached, which has no atomic step on several keys";
        throw new InputError("requests", rule, calls, `${calls.length}`);
      }
      const decision = await decide(call, now);
      return settle([decision], decision.now);
    },
    async reset(limit: Limit, key): Promise<void> {
      const each = Array.from({ length: limit.policy.shards }, (_, shard) => limit.identity(key, shard));
      await Promise.all(each.map((identity) => on("reset", identity, link.delete(keyOf(prefix, identity)))));
    },
    async getValue(limit: Limit, key, now): Promise<State> {
      const start = limit.start(key);
      if (limit.policy.shards > 1) {
        const seen = await spread.read(shards, limit, key, start, now);
        return limit.sum(seen.states, seen.now, start);
      }
      const seen = await ask(limit.identity(key), { ...look, limit, start, now }, "getValue");
      return limit.project(seen.before, seen.now, start);
    },
  };
}
