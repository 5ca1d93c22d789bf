import type { Config } from "./config.ts";
import { checkFields, checkOnStoreError, checkTimeout, fieldTable, numberError, unknownField } from "./config.ts";
import type { AllDecision, Decision, State } from "./decision.ts";
import { engine, OPS, RESERVE } from "./engine/engine.ts";
import { KEY_EXPECTS, MAX_COUNT, MAX_KEY_BYTES, MAX_NOW_MS } from "./engine/generated/bounds.ts";
import { InputError, RateLimitError } from "./errors.ts";
import { limitOf } from "./evaluate.ts";
import { Leases } from "./lease/leases.ts";
import { checkLease } from "./lease/options.ts";
import { Limit } from "./limit.ts";
import { type Resilience, resilient } from "./resilience.ts";
import { type Batch, type Fast, resilientSync } from "./resilience-sync.ts";
import { MemoryStore } from "./stores/memory.ts";
import type { Call, Op, Store, SyncStore } from "./store.ts";

/** A store's answer: at once from a synchronous store, a promise from any other. `await` works on both. */
export type Answer<S extends Store, T> = S extends SyncStore ? T : Promise<T>;

/** Settings of {@link defineLimits}. */
export interface LimiterOptions<S extends Store> extends Resilience {
  /** Where state lives; default {@link memory}. */
  store?: S | undefined;
  /** The clock, epoch ms. Default: the store's own; `Date.now` in memory. Give one in tests. */
  now?: (() => number) | undefined;
}

/** What every call takes. */
export interface CallOptions {
  /** Whose limit: any string of at most 1024 bytes in UTF-8. Without one there is one limit for all. */
  key?: string | undefined;
  /** Tokens: 0 to 2^40, fractions included; default 1. */
  count?: number | undefined;
  /** A limit defined at the call, in place of the one of this name. */
  config?: Config | undefined;
}

/** What {@link Limiter.limit} and {@link Limiter.check} take. */
export interface LimitOptions extends CallOptions {
  /** Take tokens that are not there yet: granted for `retryAt`, up to the limit's `maxReserved`. */
  reserve?: boolean | undefined;
  /** Throw a {@link RateLimitError} where it is denied. */
  throws?: boolean | undefined;
}

/** One limit of {@link Limiter.limitAll}. */
export interface LimitRequest<N extends string> extends Omit<LimitOptions, "throws" | "config"> {
  name: N;
  config?: Config | undefined;
}

/** The limit's two numbers and the config that projects them. */
export interface Value extends State {
  /** Complete, with the key's `start`: pass it to `project`. */
  config: Config;
}

/** Limits by name, on one store. Made by {@link defineLimits}. */
export class Limiter<N extends string, S extends Store> {
  /** Where state lives. */
  readonly store: S;
  readonly #limits: ReadonlyMap<string, Limit>;
  #lastName: string | undefined;
  #last: Limit | undefined;
  /** The store, with an answer where it fails. */
  readonly #asked: Store & Partial<Batch>;
  readonly #fast: Fast | undefined;
  readonly #leases: Leases | undefined;
  readonly #now: (() => number) | undefined;

  constructor(configs: Readonly<Record<N, Config>>, options: LimiterOptions<S> = {}) {
    if (typeof configs !== "object" || configs === null) {
      throw new InputError("limits", "an object of limits by name", configs);
    }
    if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
    checkFields(options, LIMITER, "defineLimits");
    const names = Object.keys(configs) as N[];
    this.#limits = new Map(names.map((name) => [name, define(name, configs[name])]));
    const { store = new MemoryStore() as Store as S, now, onStoreError, timeout } = options;
    const resilience = { onStoreError: checkOnStoreError(onStoreError), timeout: checkTimeout(timeout) };
    if (now !== undefined && typeof now !== "function") throw new InputError("now", "a function that tells ms", now);
    if (typeof store !== "object" || store === null || typeof (store as Partial<Store>).decide !== "function") {
      throw new InputError("store", "a store, such as memory() or redis(client)", store);
    }
    this.store = store;
    this.#now = now;
    if (store.sync) {
      this.#asked = resilientSync(store, resilience.onStoreError);
      this.#fast = "decideFast" in this.#asked ? (this.#asked as unknown as Fast) : undefined;
      return;
    }
    // A transaction of the host's fails or commits as a whole: an error there is the host's to see, not ours to answer for.
    if (store.inTransaction === true) {
      this.#asked = store;
      return;
    }
    const always = resilient(store, resilience);
    const lending = checkLease(store.lease);
    if (lending === undefined) {
      this.#asked = always;
      return;
    }
    for (const limit of this.#limits.values()) refuseShards(limit);
    this.#leases = new Leases(always, lending, () => this.#time(), store.during ?? (() => {}));
    this.#asked = this.#leases;
  }

  /**
   * Takes `count` tokens, or tells when they can be taken. A denial takes nothing and writes nothing.
   *
   * ```ts
   * const d = limits.limit("sendMessage", { key: userId });
   * if (!d.ok) console.log(`retry in ${d.retryAfter} ms`);
   * ```
   */
  limit(name: N, options?: LimitOptions): Answer<S, Decision>;
  limit(name: string, options: LimitOptions & { config: Config }): Answer<S, Decision>;
  limit(name: string, options?: LimitOptions): Answer<S, Decision> {
    return this.#call("take", name, options);
  }

  /** What {@link limit} would answer, with nothing taken. */
  check(name: N, options?: LimitOptions): Answer<S, Decision>;
  check(name: string, options: LimitOptions & { config: Config }): Answer<S, Decision>;
  check(name: string, options?: LimitOptions): Answer<S, Decision> {
    return this.#call("check", name, options);
  }

  /** Brings back `count` unused tokens, up to the capacity. */
  give(name: N, options?: CallOptions): Answer<S, Decision>;
  give(name: string, options: CallOptions & { config: Config }): Answer<S, Decision>;
  give(name: string, options?: CallOptions): Answer<S, Decision> {
    return this.#call("give", name, options);
  }

  /** Takes `count` tokens that are already spent: never denied, and `retryAt` tells when the debt is paid. */
  charge(name: N, options?: CallOptions): Answer<S, Decision>;
  charge(name: string, options: CallOptions & { config: Config }): Answer<S, Decision>;
  charge(name: string, options?: CallOptions): Answer<S, Decision> {
    return this.#call("charge", name, options);
  }

  /**
   * Takes from several limits in one atomic step: from all or from none. Two requests on one limit and key ask for
   * their sum.
   */
  limitAll(requests: readonly LimitRequest<N>[]): Answer<S, AllDecision> {
    return this.#all("take", requests);
  }

  /** What {@link limitAll} would answer, with nothing taken. */
  checkAll(requests: readonly LimitRequest<N>[]): Answer<S, AllDecision> {
    return this.#all("check", requests);
  }

  /**
   * {@link limit} on many keys, each by itself: a batch of messages or log lines. One decision per key, in their order.
   * On `shared()` it is one crossing to the addon; a store behind a network joins the calls as it joins all of one turn.
   *
   * `keys`: 0 to 100,000 of them. `count` is what each takes.
   */
  limitMany(name: N, keys: readonly string[], options: Pick<CallOptions, "count"> = NONE): Answer<S, Decision[]> {
    if (!Array.isArray(keys) || keys.length > MAX_KEYS_AT_ONCE) {
      const got = Array.isArray(keys) ? `${keys.length} keys` : undefined;
      throw new InputError("keys", `an array of at most ${MAX_KEYS_AT_ONCE} strings`, keys, got);
    }
    if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
    checkFields(options, MANY, "limitMany");
    const limit = this.#limit(name, undefined);
    const count = checkCount(options.count ?? 1);
    // Each is looked at before the first takes anything. Not map: it leaves out what an array with holes has not.
    const checked = Array.from(keys as readonly string[], (key) => {
      if (typeof key !== "string") throw new InputError("key", KEY_EXPECTS, key);
      return checkKey(key) as string;
    });
    const { decideMany } = this.#asked;
    if (decideMany !== undefined) {
      return decideMany.call(this.#asked, limit, checked, count, this.#time()) as Answer<S, Decision[]>;
    }
    const answers = checked.map((key) => this.#call("take", name, { key, count }));
    return (this.store.sync ? answers : Promise.all(answers)) as unknown as Answer<S, Decision[]>;
  }

  /** Forgets the limit on this key: the next call finds it full. */
  reset(name: N, options?: Pick<CallOptions, "key" | "config">): Answer<S, void>;
  reset(name: string, options: { key?: string; config: Config }): Answer<S, void>;
  reset(name: string, options?: Pick<CallOptions, "key" | "config">): Answer<S, void> {
    const { limit, key } = this.#target("reset", name, options);
    const store = this.#asked;
    return store.reset(limit, key) as Answer<S, void>;
  }

  /** The limit's two numbers now, with the config to project them by, for display. */
  getValue(name: N, options?: Pick<CallOptions, "key" | "config">): Answer<S, Value>;
  getValue(name: string, options: { key?: string; config: Config }): Answer<S, Value>;
  getValue(name: string, options?: Pick<CallOptions, "key" | "config">): Answer<S, Value> {
    const { limit, key } = this.#target("getValue", name, options);
    const store = this.#asked;
    const state = store.getValue(limit, key, this.#time());
    const told = ({ value, ts }: State): Value => ({ value, ts, config: configOf(limit, key) });
    return (state instanceof Promise ? state.then(told) : told(state)) as Answer<S, Value>;
  }

  /**
   * Brings back what is leased, at shutdown: a store with `lease` has tokens in hand that nobody else can use. Without
   * leases it does nothing. Where the store does not answer, they come back with time.
   *
   * ```ts
   * await limits.release();
   * await client.quit();
   * ```
   */
  async release(): Promise<void> {
    await this.#leases?.release();
  }

  #call(op: Op, name: string, options: LimitOptions = NONE): Answer<S, Decision> {
    if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
    const known = op === "take" || op === "check" ? LIMIT : CALL;
    // checkFields, but those that nearly every call has are compared first: it costs half as much (2 % of a decision).
    for (const field in options) {
      if (field !== "key" && field !== "count" && known[field] !== true) unknownField(field, options, known, op);
    }
    const { key, count = 1, reserve, throws, config } = options;
    const limit = this.#limit(name, config);
    if (key !== undefined && typeof key !== "string") checkKey(key);
    if (typeof count !== "number") throw numberError("count", count);
    if (reserve !== undefined && typeof reserve !== "boolean")
      throw new InputError("reserve", "true or false", reserve);
    if (throws !== undefined && typeof throws !== "boolean") throw new InputError("throws", "true or false", throws);
    const fast = this.#fast;
    if (fast !== undefined) {
      const now = this.#now === undefined ? Date.now() : this.#now();
      if (typeof now !== "number") throw numberError("now", now);
      const decision = fast.decideFast(limit, key, count, OPS[op] | (reserve === true ? RESERVE : 0), now);
      if (throws === true && !decision.ok) throw new RateLimitError(limit.name, decision);
      return decision as Answer<S, Decision>;
    }
    if (this.#leases !== undefined && op === "take" && reserve !== true && throws !== true) {
      return this.#leases.take(limit, checkKey(key), checkCount(count), this.#time()) as Answer<S, Decision>;
    }
    const call: Call = { op, limit, key: checkKey(key), count: checkCount(count), reserve: reserve === true };
    const store = this.#asked;
    const answer = store.decide(call, this.#time());
    const settle = (decision: Decision): Decision => {
      if (throws === true && !decision.ok) throw new RateLimitError(limit.name, decision);
      return decision;
    };
    return (answer instanceof Promise ? answer.then(settle) : settle(answer)) as Answer<S, Decision>;
  }

  #all(op: "take" | "check", requests: readonly LimitRequest<N>[]): Answer<S, AllDecision> {
    if (!Array.isArray(requests) || requests.length === 0 || requests.length > MAX_REQUESTS) {
      const got = Array.isArray(requests) ? `${requests.length} requests` : undefined;
      throw new InputError("requests", `an array of 1 to ${MAX_REQUESTS} requests`, requests, got);
    }
    // Not map: it leaves out what an array with holes has not.
    const calls = Array.from(requests as readonly LimitRequest<N>[], (request): Call => {
      if (typeof request !== "object" || request === null) throw new InputError("request", "an object", request);
      checkFields(request, REQUEST, "a request");
      const { name, key, count = 1, reserve, config } = request;
      const limit = this.#limit(name, config);
      if (reserve !== undefined && typeof reserve !== "boolean") {
        throw new InputError("reserve", "true or false", reserve);
      }
      return { op, limit, key: checkKey(key), count: checkCount(count), reserve: reserve === true };
    });
    const store = this.#asked;
    return store.decideAll(calls, this.#time()) as Answer<S, AllDecision>;
  }

  #target(
    operation: string,
    name: string,
    options: Pick<CallOptions, "key" | "config"> = NONE,
  ): { limit: Limit; key: string | undefined } {
    if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
    checkFields(options, TARGET, operation);
    const { key, config } = options;
    return { limit: this.#limit(name, config), key: checkKey(key) };
  }

  /** The clock that was given, in whole ms; none, where the store's own is to decide. */
  #time(): number | undefined {
    return this.#now === undefined ? undefined : checkNow(this.#now());
  }

  #limit(name: string, config: Config | undefined): Limit {
    if (config !== undefined) {
      const limit = limitOf(name, config);
      if (this.#leases !== undefined) refuseShards(limit);
      return limit;
    }
    if (name === this.#lastName) return this.#last as Limit;
    const limit = this.#limits.get(name);
    if (limit === undefined) {
      const names = [...this.#limits.keys()].map((known) => JSON.stringify(known)).join(", ");
      throw new InputError("name", `one of the limits defined: ${names}`, name);
    }
    this.#lastName = name;
    this.#last = limit;
    return limit;
  }
}

const NONE: LimitOptions = Object.freeze({});
const LIMITER = fieldTable("store", "now", "onStoreError", "timeout");
const LIMIT = fieldTable("key", "count", "reserve", "throws", "config");
const CALL = fieldTable("key", "count", "config");
const MANY = fieldTable("count");
const TARGET = fieldTable("key", "config");
const REQUEST = fieldTable("name", "key", "count", "reserve", "config");
/** The most limits that one atomic call may name. */
const MAX_REQUESTS = 100;
/** The most keys of one `limitMany`. */
const MAX_KEYS_AT_ONCE = 100_000;

function define(name: string, config: Config): Limit {
  try {
    return new Limit(name, config);
  } catch (error) {
    if (error instanceof InputError) error.message += ` (in the limit ${JSON.stringify(name)})`;
    throw error;
  }
}

/** Of several shards no answer tells what all of them hold. */
function refuseShards({ name, policy: { shards } }: Limit): void {
  if (shards === 1) return;
  const rule = `1 in the limit ${JSON.stringify(name)}, whose store leases: leases spread a hot key by themselves`;
  throw new InputError("shards", rule, shards);
}

function checkKey(key: unknown): string | undefined {
  if (key === undefined) return key;
  if (typeof key !== "string") throw new InputError("key", KEY_EXPECTS, key);
  // A character takes at most three bytes; whoever may be too long is measured.
  if (key.length * 3 > MAX_KEY_BYTES) engine().writeKey(key);
  return key;
}

function checkCount(count: unknown): number {
  if (typeof count === "number" && count >= 0 && count <= MAX_COUNT) return count;
  throw numberError("count", count);
}

function checkNow(now: unknown): number {
  if (typeof now === "number" && now >= 0 && now <= MAX_NOW_MS) return Math.floor(now);
  throw numberError("now", now);
}

/** The limit's config, complete: what `project` needs to say what the store would. */
function configOf(limit: Limit, key: string | undefined): Config {
  const { kind, rate, period, capacity, maxReserved, shards } = limit.policy;
  const common = { rate, period, capacity, ...(maxReserved === undefined ? {} : { maxReserved }), shards };
  return kind === "token bucket" ? { kind, ...common } : { kind, ...common, start: limit.start(key) };
}

/**
 * Defines limits by name. Every policy is checked here: a mistake throws an `InputError` that names limit, field, value
 * and rule.
 *
 * ```ts
 * const limits = defineLimits({
 *   sendMessage: { kind: "token bucket", rate: 10, period: MINUTE, capacity: 20 },
 *   freeTrial: { kind: "fixed window", rate: 100, period: HOUR },
 * });
 * const { ok, retryAfter } = limits.limit("sendMessage", { key: userId });
 * ```
 *
 * Without a store it is in memory and answers at once; with any other, calls answer with promises.
 */
export function defineLimits<const N extends string, S extends Store = MemoryStore>(
  limits: Readonly<Record<N, Config>>,
  options?: LimiterOptions<S>,
): Limiter<N, S> {
  return new Limiter<N, S>(limits, options);
}
