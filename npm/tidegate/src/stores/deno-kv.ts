/**
 * State in Deno KV: exact among all processes on one database, by each process's clock.
 *
 * @module
 */
import { decode, encode, NotAState } from "../limit/codec.ts";
import { checkMethods, checkTable } from "../limit/checks.ts";
import { isBytes } from "../limit/realms.ts";
import { InputError, messageOf } from "../limit/errors.ts";
import { shardingBy } from "../limit/shards.ts";
import type { AsyncStore } from "./contract.ts";
import { quoted, wellFormed } from "./record.ts";
import { storeOf } from "./steps.ts";
import { swapping } from "./swap.ts";

type KvKey = readonly string[];

/** The part of `Deno.Kv` that the store uses. */
export interface KvLike {
  // As `Deno.Kv` declares them, so that it is one.
  get(key: never): Promise<KvEntry>;
  atomic(): unknown;
}

interface KvEntry {
  readonly value: unknown;
  readonly versionstamp: string | null;
}

/** The same, as it is called here. */
interface Kv {
  get(key: KvKey): Promise<KvEntry>;
  atomic(): KvAtomic;
}

interface KvAtomic {
  check(...checks: { key: KvKey; versionstamp: string | null }[]): KvAtomic;
  set(key: KvKey, value: unknown, options?: { expireIn?: number }): KvAtomic;
  delete(key: KvKey): KvAtomic;
  commit(): Promise<{ ok: boolean }>;
}

/** Settings of {@link denoKv}. */
export interface DenoKvOptions {
  /** First part of every key, at most 128 characters; default `"tidegate"`. Limiters with the same one share their states. */
  prefix?: string | undefined;
}

const NAME = "deno-kv";
/** With more, a long key of a caller's would exceed the 2048 bytes that Deno KV accepts. */
const MOST_PREFIX = 128;
const OPTIONS = {
  prefix: {
    expects: `a string of at most ${MOST_PREFIX} characters`,
    accepts: (prefix: unknown) => typeof prefix === "string" && prefix.length <= MOST_PREFIX,
  },
};
/** The most entries that one atomic step can check. */
const MAX_STATES = 100;
/** Entries that would expire later than this (ten years) do not expire. */
const EXPIRY_MOST = 315_360_000_000;

/**
 * A store in a Deno KV database: a read and an atomic check-and-set for a batch of calls on a key, `limitAll` included.
 *
 * ```ts
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: denoKv(await Deno.openKv()) });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * A state is 16 bytes under `[prefix, identity]` and expires a minute after it is full. Concurrent calls of this process
 * on a key share one step. A step that lost against another process is repeated, and so is one on a locked file. A call
 * may touch at most 100 states (a limit has one for each shard): more reject with an `InputError`, before anything is
 * read. Calls reject with a `StoreError` if the database fails. Throws an `InputError` if an argument is wrong.
 */
export function denoKv(kv: KvLike, options: DenoKvOptions = {}): AsyncStore {
  checkMethods("kv", kv, ["get", "atomic"], "an open database, such as await Deno.openKv()");
  checkTable("denoKv", options, OPTIONS);
  const { prefix = "tidegate" } = options;
  const database = kv as Kv;
  // Deno KV escapes each NUL, so that a key with many could be too long.
  const keyOf = (id: string): KvKey => [prefix, id.includes("\0") ? quoted(id) : wellFormed(id)];

  const run = swapping<string | null>({
    name: NAME,
    sharding: shardingBy(() => Math.random()),
    read: (ids) =>
      Promise.all(
        ids.map(async (id) => {
          const { value, versionstamp } = await database.get(keyOf(id));
          return { value: versionstamp === null ? undefined : value, version: versionstamp };
        }),
      ),
    decode(value) {
      if (isBytes(value)) return decode(value);
      throw new NotAState("what is stored is not bytes");
    },
    async swap(changes) {
      const atomic = database.atomic();
      for (const { id, seen, write } of changes) {
        const key = keyOf(id);
        if (seen !== undefined) atomic.check({ key, versionstamp: seen.version });
        if (write?.state === null) atomic.delete(key);
        else if (write)
          atomic.set(key, encode(write.state), write.dropIn > EXPIRY_MOST ? {} : { expireIn: write.dropIn });
      }
      return (await atomic.commit()).ok;
    },
    // SQLite reports a lock before it has changed anything.
    busy: (error) => (/database is (locked|busy)/i.test(messageOf(error)) ? "database" : undefined),
  });
  return storeOf(NAME, async (targets, ...step) => {
    const states = targets.reduce((sum, { limit }) => sum + limit.policy.shards, 0);
    if (states <= MAX_STATES) return run(targets, ...step);
    const rule = `at most ${MAX_STATES} in all that one call touches: Deno KV checks no more in one atomic step`;
    throw new InputError("shards", rule, states);
  });
}
