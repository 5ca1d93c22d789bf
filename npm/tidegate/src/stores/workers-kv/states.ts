/** The states of one KV namespace, as this isolate has cached them. */
import { sha256 } from "../../http/sha256.ts";
import { decode, encode } from "../../limit/codec.ts";
import type { Decision, State } from "../../limit/decision.ts";
import { messageOf } from "../../limit/errors.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Call } from "../contract.ts";
import { failure } from "../failure.ts";
import { wellFormed } from "../record.ts";

/** What is used of a KV namespace, by shape. */
export interface KvNamespaceLike {
  get(key: string, type: "arrayBuffer"): Promise<ArrayBuffer | null>;
  put(key: string, value: ArrayBuffer | ArrayBufferView, options: { expirationTtl: number }): Promise<void>;
  delete(key: string): Promise<void>;
}

/** One of them. */
export interface Cached {
  readonly limit: Limit;
  readonly key: string | undefined;
  state: State | null;
  /** When it was last read from KV, and written to it; ms on this isolate's clock. */
  readAt: number;
  writtenAt: number;
  /** Whether the last change is still to be written to KV. */
  isAhead: boolean;
  /** The last write, which may be under way. */
  writing?: Promise<void>;
}

/** The store's name in errors. */
export const NAME = "workers-kv";
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
export function change(call: Call, at: Cached, now: number): Decision {
  const { decision, state } = call.limit.evaluate(at.state, call, now, { start: call.limit.start(call.key) });
  if (state !== at.state) at.isAhead = true;
  at.state = state;
  return decision;
}

/** Whether KV has had time to serve all that this isolate wrote: where it then holds nothing, another one reset the key. */
const isReadable = ({ isAhead, writtenAt }: Cached): boolean => !isAhead && Date.now() - writtenAt >= 2 * READ_EVERY;

export class States {
  readonly #namespace: KvNamespaceLike;
  readonly #prefix: string;
  readonly #cached = new Map<string, Cached>();

  constructor(namespace: KvNamespaceLike, prefix: string) {
    this.#namespace = namespace;
    this.#prefix = prefix;
  }

  /** The state, which is read again after a minute. */
  async look(limit: Limit, key: string | undefined, now: number): Promise<Cached> {
    const id = limit.identity(key);
    const before = this.#cached.get(id);
    if (before !== undefined && Math.abs(Date.now() - before.readAt) < READ_EVERY) return before;
    const stored = await this.#read(id);
    const own = this.#cached.get(id);
    if (own === undefined) {
      const made = this.#add({ limit, key, state: stored });
      await this.#evict(now);
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
  current(found: Cached): Cached {
    const id = found.limit.identity(found.key);
    const own = this.#cached.get(id) ?? found;
    this.#cached.set(id, own);
    return own;
  }

  /** Writes to KV, at most once a second. */
  async write(at: Cached, now: number): Promise<void> {
    if (at.isAhead && Math.abs(Date.now() - at.writtenAt) >= WRITE_EVERY) await this.#put(at, now);
  }

  async reset(limit: Limit, key: string | undefined): Promise<void> {
    const id = limit.identity(key);
    const before = this.#cached.get(id);
    // First, so that no call that is decided meanwhile writes the old state.
    const after = this.#add({ limit, key, state: null });
    try {
      // A write that arrives after the deletion would undo it.
      await before?.writing?.catch(() => undefined);
      await this.#namespace.delete(this.#keyOf(id));
    } catch (error) {
      if (this.#cached.get(id) === after && before !== undefined) this.#cached.set(id, before);
      throw error;
    }
    // KV may go on serving the old one for a minute, and has lost what was granted and written meanwhile.
    after.readAt = Date.now();
    after.isAhead = after.state !== null;
    await this.#evict(after.readAt);
  }

  /** KV's keys have 512 bytes at most; a longer one becomes its hash. */
  #keyOf(id: string): string {
    const key = this.#prefix + wellFormed(id);
    if (new TextEncoder().encode(key).length <= MAX_KEY_BYTES) return key;
    return `${this.#prefix}#${sha256(new TextEncoder().encode(wellFormed(id)))}`;
  }

  async #read(id: string): Promise<State | null> {
    const bytes = await this.#namespace.get(this.#keyOf(id), "arrayBuffer");
    try {
      return bytes === null ? null : decode(new Uint8Array(bytes));
    } catch (error) {
      throw failure(error, NAME, "read", id);
    }
  }

  #add(state: Pick<Cached, "limit" | "key" | "state">): Cached {
    const made = { ...state, readAt: Date.now(), writtenAt: -Infinity, isAhead: false };
    this.#cached.set(state.limit.identity(state.key), made);
    return made;
  }

  /**
   * Makes room. Grants that KV does not have yet are evicted only once they are written: a client would get its tokens back
   * by a flood of other keys.
   */
  async #evict(now: number): Promise<void> {
    const cached = this.#cached;
    if (cached.size <= MAX_CACHED) return;
    let visited = 0;
    for (const [id, at] of cached) {
      cached.delete(id);
      if (!at.isAhead) return;
      // To the end of the order.
      cached.set(id, at);
      if (++visited === MAX_VISITED) break;
    }
    const [id, oldest] = cached.entries().next().value as [string, Cached];
    // Where KV refuses this write too, memory is bounded all the same.
    await this.#put(oldest, now).catch(() => undefined);
    const isOver = !oldest.isAhead || cached.size > 2 * MAX_CACHED;
    if (isOver && cached.get(id) === oldest) cached.delete(id);
  }

  async #put(at: Cached, now: number): Promise<void> {
    const { limit, key, state } = at;
    at.isAhead = false;
    at.writtenAt = Date.now();
    if (state === null) return;
    const fullAt = limit.fullAt(state, now, { start: limit.start(key) });
    const expirationTtl = Math.min(LEAST_TTL + Math.ceil(Math.max(fullAt - now, 0) / 1000), MOST_TTL);
    try {
      at.writing = this.#namespace.put(this.#keyOf(limit.identity(key)), encode(state), { expirationTtl });
      await at.writing;
    } catch (error) {
      at.isAhead = true;
      // What this isolate has cached decides, whether or not others can read it yet.
      if (!TOO_OFTEN.test(messageOf(error))) throw error;
    }
  }
}
