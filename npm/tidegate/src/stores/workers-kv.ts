/**
 * State in Cloudflare Workers KV: approximate, for coarse quotas, as its type shows.
 *
 * @module
 */
import { during } from "#workers";
import { sha256 } from "../http/sha256.ts";
import { checkMethods, checkTable, FLAG, STRING } from "../limit/checks.ts";
import { decode, encode } from "../limit/codec.ts";
import { combined } from "../limit/combined.ts";
import type { Decision, State } from "../limit/decision.ts";
import { InputError, messageOf, showBinding } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import { layers } from "../limiter/layers.ts";
import type { AsyncStore, Call, Key } from "./contract.ts";
import { failure } from "./failure.ts";
import { wellFormed } from "./record.ts";

/** The part of a KV namespace that is used. */
export interface KvNamespaceLike {
  get(key: string, type: "arrayBuffer"): Promise<ArrayBuffer | null>;
  put(key: string, value: ArrayBuffer | ArrayBufferView, options: { expirationTtl: number }): Promise<void>;
  delete(key: string): Promise<void>;
}

/** Settings of {@link workersKv}. */
export interface WorkersKvOptions {
  /** First part of every key; default `"tidegate:"`. */
  prefix?: string | undefined;
  /** Also allow `limitAll` and `reserve`, whose guarantees KV cannot keep: they are then approximate, too. Default false. */
  approximate?: boolean | undefined;
}

/** A store whose counts are approximate. */
export interface ApproximateStore extends AsyncStore {
  readonly approximate: true;
}

const NAME = "workers-kv";
const OPTIONS = { prefix: STRING, approximate: FLAG };

/**
 * A store in a namespace of Workers KV. KV is eventually consistent: another location sees a write a minute late, and
 * of two writes the later one wins. So each location decides on what it has read, and **in the worst case the limit is
 * granted once per isolate and minute**. That is enough for a coarse quota, such as a thousand calls a day. Use
 * `tidegate/durable-object` for anything that costs money or protects a password.
 *
 * ```ts
 * const limits = defineLimits({ daily: { kind: "fixed window", rate: 1000, period: DAY } }, { store: workersKv(env.QUOTAS) });
 * ```
 * An isolate reads a key once a minute, as do calls that are made meanwhile, and writes it at most once a second. What is taken
 * within a second after a write is written at its end, and lost if the isolate ends before. Denials and checks write nothing
 * else. `limitAll` and `reserve` reject with an `InputError` unless `approximate: true`; limits with `shards` always do.
 * Throws an `InputError` if an argument is wrong.
 */
export function workersKv(namespace: KvNamespaceLike, options: WorkersKvOptions = {}): ApproximateStore {
  const expects = "a binding to a KV namespace, such as env.QUOTAS";
  checkMethods("namespace", namespace, ["put"], expects, showBinding("kv_namespaces"));
  checkTable("workersKv", options, OPTIONS);
  const { prefix = "tidegate:", approximate = false } = options;
  const states = statesIn(namespace, prefix);

  function refuse({ policy: { shards } }: Limit, reserve: boolean): void {
    if (shards !== 1) {
      throw new InputError("shards", "1 on Workers KV, where no key is contended for", shards);
    }
    if (reserve && !approximate) {
      const rule = "absent on Workers KV, which cannot promise it, unless `approximate: true`";
      throw new InputError("reserve", rule, true);
    }
  }

  return {
    name: NAME,
    sync: false,
    layers,
    // A write to KV often takes longer than a caller waits, and would end with its request.
    during,
    approximate: true,
    async decide(call, now = Date.now()) {
      refuse(call.limit, call.reserve);
      const at = states.current(await states.look(call.limit, call.key, now));
      const decision = change(call, at, now);
      await states.write(at, now);
      return decision;
    },
    async decideAll(calls, now = Date.now()) {
      if (!approximate) {
        const rule = "absent on Workers KV, which has no atomic step, unless `approximate: true`";
        throw new InputError("limitAll", rule, calls);
      }
      for (const call of calls) refuse(call.limit, call.reserve);
      const found = await Promise.all(calls.map((call) => states.look(call.limit, call.key, now)));
      const all = found.map((one) => states.current(one));
      const checks = calls.map((call, i) => change({ ...call, op: "check" }, all[i] as Cached, now));
      const answer = combined(checks, now);
      if (!answer.ok || calls[0]?.op === "check") return answer;
      for (const [i, call] of calls.entries()) change(call, all[i] as Cached, now);
      await Promise.all(all.map((at) => states.write(at, now)));
      return answer;
    },
    async reset(limit, key) {
      refuse(limit, false);
      await states.reset(limit, key);
    },
    async getValue(limit, key, now = Date.now()) {
      refuse(limit, false);
      return limit.project((await states.look(limit, key, now)).state, now, limit.start(key));
    },
  };
}

/** A state as this isolate has cached it. */
interface Cached {
  readonly limit: Limit;
  readonly key: Key;
  state: State | null;
  /** When it was last read from KV, and written to it; ms on this isolate's clock. */
  readAt: number;
  writtenAt: number;
  /** Whether the last change is still to be written to KV. */
  isAhead: boolean;
  /** The `writtenAt` of the write after which a second is waited for, so that what is taken within it is written, too. */
  waitsAfter?: number;
  /** The last write, which may be under way. */
  writing?: Promise<void>;
}

/** KV takes one write a second for a key. */
const WRITE_EVERY = 1000;
/** How KV rejects more of them, such as those of several isolates: "KV PUT failed: 429 Too Many Requests". */
const TOO_OFTEN = /\b429\b/;
/** Ms for which KV itself may serve a cached value: a second read within them returns nothing new. */
const READ_EVERY = 60_000;
/** The shortest time, in seconds, that KV keeps an entry. */
const LEAST_TTL = 60;
/** A year, in seconds: the longest time that an entry is kept. */
const MOST_TTL = 31_536_000;
const MAX_KEY_BYTES = 512;
const MAX_CACHED = 10_000;
/** How many states are looked at for one that can be evicted. */
const MAX_VISITED = 10;

/** No `await` in here: within this isolate a step is atomic. */
function change(call: Call, at: Cached, now: number): Decision {
  const { decision, state } = call.limit.evaluate(at.state, call, now, { start: call.limit.start(call.key) });
  if (state !== at.state) at.isAhead = true;
  at.state = state;
  return decision;
}

/** Whether KV has had time to serve all that this isolate wrote: if it then holds nothing, another one reset the key. */
const isReadable = ({ isAhead, writtenAt }: Cached): boolean => !isAhead && Date.now() - writtenAt >= 2 * READ_EVERY;

/** The states of one namespace, as this isolate has cached them. */
function statesIn(namespace: KvNamespaceLike, prefix: string) {
  const cached = new Map<string, Cached>();

  /** The state, which is read again after a minute. */
  async function look(limit: Limit, key: Key, now: number): Promise<Cached> {
    const id = limit.identity(key);
    const before = cached.get(id);
    if (before !== undefined && Math.abs(Date.now() - before.readAt) < READ_EVERY) return before;
    const stored = await read(id);
    const own = cached.get(id);
    if (own === undefined) {
      const made = add({ limit, key, state: stored });
      evict(now);
      return made;
    }
    // Another call has read meanwhile, or a reset has overtaken this one, whose state is then out of date.
    if (own !== before) return own;
    // Other locations took some, and so did this one: the lower value counts.
    const start = limit.start(key);
    const tookMore = limit.project(stored, now, start).value < limit.project(own.state, now, start).value;
    if (tookMore || (stored === null && isReadable(own))) own.state = stored;
    own.readAt = Date.now();
    return own;
  }

  /** The state to decide on: `found`, unless it was reset or evicted since it was found. */
  function current(found: Cached): Cached {
    const id = found.limit.identity(found.key);
    const own = cached.get(id) ?? found;
    cached.set(id, own);
    return own;
  }

  /** Writes to KV, at most once a second: what is taken within one is written at its end. */
  async function write(at: Cached, now: number): Promise<void> {
    if (!at.isAhead) return;
    const left = WRITE_EVERY - Math.abs(Date.now() - at.writtenAt);
    if (left <= 0) return put(at, now);
    if (at.waitsAfter === at.writtenAt) return;
    at.waitsAfter = at.writtenAt;
    during(writeIn(left, at, now));
  }

  /** If it fails, or its host ends, the next call on the key writes. */
  async function writeIn(ms: number, at: Cached, now: number): Promise<void> {
    const { writtenAt } = at;
    await new Promise((done) => setTimeout(done, ms));
    const isCurrent = cached.get(at.limit.identity(at.key)) === at && at.writtenAt === writtenAt;
    if (at.isAhead && isCurrent) await put(at, now).catch(() => undefined);
  }

  async function reset(limit: Limit, key: Key): Promise<void> {
    const id = limit.identity(key);
    const before = cached.get(id);
    // Before the deletion, so that no call that is decided meanwhile writes the old state.
    const after = add({ limit, key, state: null });
    try {
      // A write that arrives after the deletion would undo it.
      await before?.writing?.catch(() => undefined);
      await namespace.delete(keyOf(id));
    } catch (error) {
      if (cached.get(id) === after && before !== undefined) cached.set(id, before);
      throw error;
    }
    // KV may go on serving the old one for a minute, and has lost what was granted and written meanwhile.
    after.readAt = Date.now();
    after.isAhead = after.state !== null;
    evict(after.readAt);
  }

  /** KV's keys have 512 bytes at most; a longer one becomes its hash. */
  function keyOf(id: string): string {
    const key = prefix + wellFormed(id);
    if (new TextEncoder().encode(key).length <= MAX_KEY_BYTES) return key;
    return `${prefix}#${sha256(new TextEncoder().encode(wellFormed(id)))}`;
  }

  async function read(id: string): Promise<State | null> {
    const bytes = await namespace.get(keyOf(id), "arrayBuffer");
    try {
      return bytes === null ? null : decode(new Uint8Array(bytes));
    } catch (error) {
      throw failure(error, { store: NAME, operation: "read", identity: id });
    }
  }

  function add(state: Pick<Cached, "limit" | "key" | "state">): Cached {
    const made = { ...state, readAt: Date.now(), writtenAt: -Infinity, isAhead: false };
    cached.set(state.limit.identity(state.key), made);
    return made;
  }

  /**
   * Makes room. Grants that KV does not have yet are evicted only once they are written. A flood of other keys would give a
   * client its tokens back.
   */
  function evict(now: number): void {
    if (cached.size <= MAX_CACHED) return;
    let visited = 0;
    for (const [id, at] of cached) {
      cached.delete(id);
      if (!at.isAhead) return;
      // Moved to the end of the order.
      cached.set(id, at);
      if (++visited === MAX_VISITED) break;
    }
    const [id, oldest] = cached.entries().next().value as [string, Cached];
    // So that the next call writes another one.
    cached.delete(id);
    cached.set(id, oldest);
    const written = async (): Promise<void> => {
      // If KV refuses this write too, memory is bounded all the same.
      await put(oldest, now).catch(() => undefined);
      const isOver = !oldest.isAhead || cached.size > 2 * MAX_CACHED;
      if (isOver && cached.get(id) === oldest) cached.delete(id);
    };
    // The call, which is on another key, does not wait for it.
    during(written());
  }

  async function put(at: Cached, now: number): Promise<void> {
    const { limit, key, state } = at;
    at.isAhead = false;
    at.writtenAt = Date.now();
    if (state === null) return;
    const fullAt = limit.fullAt(state, now, { start: limit.start(key) });
    const expirationTtl = Math.min(LEAST_TTL + Math.ceil(Math.max(fullAt - now, 0) / 1000), MOST_TTL);
    try {
      at.writing = namespace.put(keyOf(limit.identity(key)), encode(state), { expirationTtl });
      await at.writing;
    } catch (error) {
      at.isAhead = true;
      // What this isolate has cached decides, whether or not others can read it yet.
      if (!TOO_OFTEN.test(messageOf(error))) throw error;
    }
  }

  return { look, current, write, reset };
}
