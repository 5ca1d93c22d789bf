/**
 * The limiter: checks a call (calls.ts), and passes it on to the store, or to the layers around a store that can fail
 * (layers.ts). `limit`, `check`, `give` and `charge` all go through `#call`: read that first.
 */
import { layers } from "#layers";
import {
  type Answer,
  type BlockOptions,
  type CallOptions,
  checkLimiterOptions,
  type InlineRequest,
  type KeyOptions,
  type LimiterOptions,
  type LimiterSettings,
  type LimitOptions,
  type LimitRequest,
  type Value,
} from "./options.ts";
import {
  BLOCK_FIELDS,
  callOf,
  checkCall,
  checkCount,
  checkFor,
  checkKey,
  checkKeys,
  checkNow,
  checkRequests,
  distinct,
  EXPECTED,
  MANY_FIELDS,
  NO_OPTIONS,
  TARGET_FIELDS,
} from "./calls.ts";
import { unknownName } from "./check-limiter.ts";
import { type Config, numberError } from "../limit/config.ts";
import { checkFlag, checkObject, checkOptions, checkTable } from "../limit/checks.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";
import { PLAIN, tagOf } from "../limit/realms.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { OPS, RESERVE } from "../engine/generated/wire.ts";
import { InputError, RateLimitError, show } from "../limit/errors.ts";
import type { Leases } from "./lease/leases.ts";
import { configOf } from "../limit/evaluator.ts";
import { callLimit, Limit } from "../limit/limit.ts";
import type { Layered, layers as Layers } from "./layers.ts";
import type { MemoryStore } from "../stores/memory.ts";
import type { AsyncStore, Call, Op, Shortcuts, Store } from "../stores/contract.ts";

function limitsOf(configs: Readonly<Record<string, Config>>): ReadonlyMap<string, Limit> {
  const expected = "an object of limits by name";
  checkObject("limits", configs, expected);
  const all = Object.entries(configs);
  // A Map or a promise has none, so every call would fail instead.
  const tag = all.length > 0 ? PLAIN : tagOf(configs);
  if (tag !== PLAIN) throw new InputError("limits", expected, configs, tag);
  return new Map(all.map(([name, config]) => [name, define(name, config)]));
}

function define(name: string, config: Config): Limit {
  try {
    return new Limit(name, config);
  } catch (error) {
    if (error instanceof InputError) error.message += ` (in the limit ${show(name)})`;
    throw error;
  }
}

/** Returns a grant; throws the error of a denial, which is the store's own if it has one. */
export function grantedOrThrow(store: Store, name: string, decision: Decision): Decision {
  if (decision.ok) return decision;
  throw (store as Partial<AsyncStore>).denied?.(name, decision) ?? new RateLimitError(name, decision);
}

/**
 * Limits by name, on one store. Made by {@link defineLimits}. To write its type, as for `isolatedDeclarations`, use
 * `Limiter<"api", MemoryStore>`, or `Limiter<"api", AsyncStore>` on a store that returns promises. With `Limiter<"api">` calls may
 * return either. Each method throws an `InputError` if an argument is wrong: synchronously, on a store that returns promises
 * too.
 */
export class Limiter<N extends string = string, S extends Store = Store> {
  /** Where state lives. */
  readonly store: S;
  /** The names of the defined limits. Their type is `(typeof limits.names)[number]`. */
  readonly names: readonly N[];
  readonly #limits: ReadonlyMap<string, Limit>;
  /** The store behind the layers that handle its failures, and leases. */
  readonly #layered: Store & Shortcuts;
  readonly #fast: Required<Pick<Shortcuts, "decideFast">> | undefined;
  readonly #leases: Leases | undefined;
  readonly #now: (() => number) | undefined;

  constructor(configs: Readonly<Record<N, Config>>, settings: LimiterSettings<S>) {
    const store: Store = settings.store;
    this.#limits = limitsOf(configs);
    this.names = Object.freeze([...this.#limits.keys()] as N[]);
    this.store = settings.store;
    this.#now = settings.now;
    const { inTransaction, cannotFail } = store as Partial<AsyncStore> & Shortcuts;
    // A transaction fails or commits as a whole: its errors are the host's.
    const isBare = (store.sync ? cannotFail : inTransaction) === true;
    const { layers: own = layers } = store as { layers?: typeof Layers };
    const layered: Layered = isBare ? { store } : own(store, settings, () => this.#time());
    this.#leases = layered.leases;
    for (const limit of this.#limits.values()) this.#leases?.checkLimit(limit);
    this.#layered = layered.store;
    if ("decideFast" in layered.store) this.#fast = layered.store as Required<Shortcuts>;
    // Methods are bound, so that they also work when passed on, through a proxy, or inherited, where private fields
    // are absent.
    for (const name of Object.getOwnPropertyNames(Limiter.prototype) as "limit"[]) {
      if ((name as string) === "constructor") continue;
      Object.defineProperty(this, name, { value: this[name].bind(this), writable: true, configurable: true });
    }
  }

  /** Vue wraps only plain objects in a proxy, through which the store would lack its private fields. */
  get [Symbol.toStringTag](): string {
    return "Limiter";
  }

  /**
   * Takes `count` tokens, or returns when they can be taken. A denial takes nothing and writes nothing.
   *
   * ```ts
   * const d = limits.limit("sendMessage", { key: userId });
   * if (!d.ok) console.log(`retry in ${d.retryAfter} ms`);
   * ```
   */
  limit(name: N, options?: LimitOptions): Answer<S, Decision>;
  limit(name: string, options: LimitOptions & { config: Config }): Answer<S, Decision>;
  limit(name: string, options?: LimitOptions): MaybePromise<Decision> {
    return this.#call("take", name, options);
  }

  /** What {@link limit} would return; takes nothing. */
  check(name: N, options?: LimitOptions): Answer<S, Decision>;
  check(name: string, options: LimitOptions & { config: Config }): Answer<S, Decision>;
  check(name: string, options?: LimitOptions): MaybePromise<Decision> {
    return this.#call("check", name, options);
  }

  /** Returns `count` unused tokens to the limit, up to the capacity. */
  give(name: N, options?: CallOptions): Answer<S, Decision>;
  give(name: string, options: CallOptions & { config: Config }): Answer<S, Decision>;
  give(name: string, options?: CallOptions): MaybePromise<Decision> {
    return this.#call("give", name, options);
  }

  /** Takes `count` tokens that are already spent: never denied; `retryAt` is when the debt is paid. */
  charge(name: N, options?: CallOptions): Answer<S, Decision>;
  charge(name: string, options: CallOptions & { config: Config }): Answer<S, Decision>;
  charge(name: string, options?: CallOptions): MaybePromise<Decision> {
    return this.#call("charge", name, options);
  }

  /**
   * Blocks the key: every request for one token or more is denied until the block ends, `for` ms (1 to 2^40) from now.
   * `retryAt` of the decision is the end of the block, or later if the key has no token then.
   *
   * ```ts
   * limits.block("login", { key: userId, for: "15m" });
   * limits.unblock("login", { key: userId });
   * ```
   * When a block ends, a token bucket holds one token; a window that began at a request holds what it would have held, at most
   * `rate` tokens. With windows on a grid, the block ends where the next window begins. A block is debt: it never shortens a
   * debt or an earlier block, and {@link give} pays it. A request with `reserve` may be granted for later. If the store fails,
   * `ok` is `false`, unless a local limit decides. Throws an `InputError` if `for` is out of range.
   */
  block(name: N, options: BlockOptions): Answer<S, Decision>;
  block(name: string, options: BlockOptions & { config: Config }): Answer<S, Decision>;
  block(name: string, options: BlockOptions): MaybePromise<Decision> {
    checkOptions("block", options, BLOCK_FIELDS, 'an object with for, such as { key, for: "15m" }');
    const limit = this.#limit(name, options.config);
    const call = { op: "block", limit, key: checkKey(options), count: checkFor(options.for), reserve: false } as const;
    return this.#layered.decide(call, this.#time());
  }

  /** Ends a block, and all that the key owes: the same as {@link reset}. */
  unblock(name: N, options?: KeyOptions): Answer<S, void>;
  unblock(name: string, options: KeyOptions & { config: Config }): Answer<S, void>;
  unblock(name: string, options?: KeyOptions): MaybePromise<void> {
    return this.#reset("unblock", name, options);
  }

  /**
   * Takes from several limits, 1 to 100, in one atomic step: from all or from none. Requests on the same limit and key are
   * decided as one request for their sum, which may owe tokens only if each of them sets `reserve`.
   */
  limitAll(requests: readonly LimitRequest<N>[]): Answer<S, AllDecision>;
  limitAll(requests: readonly (LimitRequest<N> | InlineRequest)[]): Answer<S, AllDecision>;
  limitAll(requests: readonly LimitRequest<string>[]): MaybePromise<AllDecision> {
    return this.#all("take", requests);
  }

  /** What {@link limitAll} would return; takes nothing. */
  checkAll(requests: readonly LimitRequest<N>[]): Answer<S, AllDecision>;
  checkAll(requests: readonly (LimitRequest<N> | InlineRequest)[]): Answer<S, AllDecision>;
  checkAll(requests: readonly LimitRequest<string>[]): MaybePromise<AllDecision> {
    return this.#all("check", requests);
  }

  /**
   * {@link limit} on many keys, independently: a batch of messages or log lines. One decision per key, in order. On
   * `shared()` it is one call of the addon; a store behind a network batches the calls like any concurrent ones.
   *
   * `keys`: 0 to 100,000 of them. `count` is what each takes.
   */
  limitMany(name: N, keys: readonly string[], options: Pick<CallOptions, "count"> = NO_OPTIONS): Answer<S, Decision[]> {
    checkTable("limitMany", options, MANY_FIELDS, "an object, such as { count }");
    const limit = this.#limit(name, undefined);
    const count = checkCount(options.count);
    // All are checked before the first takes tokens.
    const checked = checkKeys(keys);
    const { decideMany } = this.#layered;
    // Without keys there is nothing to decide, so no clock is read.
    if (decideMany !== undefined && checked.length > 0) {
      return decideMany.call(this.#layered, limit, checked, count, this.#time()) as Answer<S, Decision[]>;
    }
    const decisions = checked.map((key) => this.#call("take", name, { key, count }));
    return (this.store.sync ? decisions : Promise.all(decisions)) as unknown as Answer<S, Decision[]>;
  }

  /** Resets the limit on this key: it is full. */
  reset(name: N, options?: KeyOptions): Answer<S, void>;
  reset(name: string, options: KeyOptions & { config: Config }): Answer<S, void>;
  reset(name: string, options?: KeyOptions): MaybePromise<void> {
    return this.#reset("reset", name, options);
  }

  /** The limit's current state, with the config for `project`: for display. */
  getValue(name: N, options?: KeyOptions): Answer<S, Value>;
  getValue(name: string, options: KeyOptions & { config: Config }): Answer<S, Value>;
  getValue(name: string, options?: KeyOptions): MaybePromise<Value> {
    const { limit, key } = this.#target("getValue", name, options);
    const read = ({ value, ts }: State): Value => ({ value, ts, config: configOf(limit.policy, limit.start(key)) });
    return follow(this.#layered.getValue(limit, key, this.#time()), read);
  }

  /**
   * Returns leased tokens, at shutdown: with `lease`, this process holds tokens that no other process can use. Without leases
   * it does nothing. If the store fails, the limit refills with time.
   *
   * ```ts
   * await limits.release();
   * await client.quit();
   * ```
   */
  async release(): Promise<void> {
    await this.#leases?.release();
  }

  #call(op: Exclude<Op, "block">, name: string, options: LimitOptions = NO_OPTIONS): MaybePromise<Decision> {
    checkCall(op, options);
    const { reserve, throws, config } = options;
    const limit = this.#limit(name, config);
    const key = checkKey(options);
    const count = checkCount(options.count);
    checkFlag("reserve", reserve);
    checkFlag("throws", throws);
    const fast = this.#fast;
    if (fast !== undefined) {
      const now = this.#now === undefined ? Date.now() : this.#now();
      if (typeof now !== "number") throw numberError("now", now);
      const decision = fast.decideFast(limit, key, count, OPS[op] | (reserve === true ? RESERVE : 0), now);
      return throws === true ? grantedOrThrow(this.store, limit.name, decision) : decision;
    }
    if (this.#leases !== undefined && op === "take" && reserve !== true && throws !== true) {
      return this.#leases.take(limit, key, count, this.#time());
    }
    const call: Call = { op, limit, key, count, reserve: reserve === true };
    const decided = this.#layered.decide(call, this.#time());
    if (throws !== true) return decided;
    return follow(decided, (decision) => grantedOrThrow(this.store, limit.name, decision));
  }

  #all(op: "take" | "check", requests: readonly LimitRequest<string>[]): MaybePromise<AllDecision> {
    checkRequests(requests);
    // Not `map`, which skips the holes of an array.
    const given = Array.from(requests, (request) => callOf(op, request, (name, config) => this.#limit(name, config)));
    const { calls, indexes } = distinct(given);
    const answer = this.#layered.decideAll(calls, this.#time());
    if (calls.length === given.length) return answer;
    return follow(answer, (all) => ({ ...all, decisions: indexes.map((index) => all.decisions[index] as Decision) }));
  }

  #reset(operation: string, name: string, options: KeyOptions | undefined): MaybePromise<void> {
    const { limit, key } = this.#target(operation, name, options);
    return this.#layered.reset(limit, key);
  }

  #target(
    operation: string,
    name: string,
    options: KeyOptions = NO_OPTIONS,
  ): { limit: Limit; key: string | undefined } {
    checkOptions(operation, options, TARGET_FIELDS, EXPECTED);
    return { limit: this.#limit(name, options.config), key: checkKey(options) };
  }

  /** The limiter's clock in integer ms; `undefined` for the store's own. */
  #time(): number | undefined {
    return this.#now === undefined ? undefined : checkNow(this.#now());
  }

  #limit(name: string, config: Config | undefined): Limit {
    const limit = config === undefined ? this.#limits.get(name) : callLimit(name, config);
    if (limit === undefined) throw unknownName(name, this.names);
    if (config !== undefined) this.#leases?.checkLimit(limit);
    return limit;
  }
}

/**
 * Defines limits by name. Every config is checked here: a mistake throws an `InputError` that names limit, field, value
 * and rule.
 *
 * ```ts
 * const limits = defineLimits({
 *   sendMessage: { kind: "token bucket", rate: 10, period: MINUTE, capacity: 20 },
 *   freeTrial: { kind: "fixed window", rate: 100, period: HOUR },
 * });
 * const { ok, retryAfter } = limits.limit("sendMessage", { key: userId });
 * ```
 * Without a store, state is in memory and calls are synchronous; with an asynchronous store, calls return promises.
 */
export function defineLimits<const N extends string, S extends Store = MemoryStore>(
  limits: Readonly<Record<N, Config>>,
  options: LimiterOptions<S> = {},
): Limiter<N, S> {
  return new Limiter<N, S>(limits, checkLimiterOptions(options));
}
