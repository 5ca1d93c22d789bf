import {
  type Answer,
  type CallOptions,
  checkCall,
  checkCount,
  checkFlag,
  checkKey,
  checkKeys,
  checkNow,
  checkOptions,
  checkRequest,
  checkRequests,
  checkSums,
  type LimiterOptions,
  type LimitOptions,
  type LimitRequest,
  MANY,
  NONE,
  refuseShards,
  TARGET,
  type Value,
} from "./options.ts";
import { askedOf, checkLimiter, configOf, Defined } from "./defined.ts";
import { type Config, checkFields, numberError } from "../limit/config.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { OPS, RESERVE } from "../engine/generated/wire.ts";
import { RateLimitError } from "../limit/errors.ts";
import type { Leases } from "./lease/leases.ts";
import type { Limit } from "../limit/limit.ts";
import type { Batch, Fast } from "./resilience-sync.ts";
import type { MemoryStore } from "../stores/memory.ts";
import type { Call, Op, Store } from "../stores/contract.ts";

export type { Answer, CallOptions, LimiterOptions, LimitOptions, LimitRequest, Value } from "./options.ts";
type Target = Pick<CallOptions, "key" | "config">;

/** Limits by name, on one store. Made by {@link defineLimits}. */
export class Limiter<N extends string, S extends Store> {
  /** Where state lives. */
  readonly store: S;
  /** The limits that are defined. */
  readonly names: readonly N[];
  readonly #defined: Defined;
  /** The store, with an answer where it fails. */
  readonly #asked: Store & Partial<Batch>;
  readonly #fast: Fast | undefined;
  readonly #leases: Leases | undefined;
  readonly #now: (() => number) | undefined;

  constructor(configs: Readonly<Record<N, Config>>, options: LimiterOptions<S> = {}) {
    const settings = checkLimiter(options);
    this.#defined = new Defined(configs);
    this.names = this.#defined.names as readonly N[];
    this.store = settings.store;
    this.#now = settings.now;
    const { asked, leases } = askedOf(settings, this.#defined, () => this.#time());
    this.#asked = asked;
    this.#leases = leases;
    this.#fast = asked.sync && "decideFast" in asked ? (asked as unknown as Fast) : undefined;
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
    checkOptions(options, "an object, such as { count }");
    checkFields(options, MANY, "limitMany");
    const limit = this.#limit(name, undefined);
    const count = checkCount(options.count ?? 1);
    // Each is looked at before the first takes anything.
    const checked = checkKeys(keys);
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
    return this.#asked.reset(limit, key) as Answer<S, void>;
  }

  /** The limit's two numbers now, with the config to project them by, for display. */
  getValue(name: N, options?: Pick<CallOptions, "key" | "config">): Answer<S, Value>;
  getValue(name: string, options: { key?: string; config: Config }): Answer<S, Value>;
  getValue(name: string, options?: Pick<CallOptions, "key" | "config">): Answer<S, Value> {
    const { limit, key } = this.#target("getValue", name, options);
    const state = this.#asked.getValue(limit, key, this.#time());
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
    checkCall(op, options);
    const { key, count = 1, reserve, throws, config } = options;
    const limit = this.#limit(name, config);
    if (key !== undefined && typeof key !== "string") checkKey(key);
    if (typeof count !== "number") throw numberError("count", count);
    checkFlag("reserve", reserve);
    checkFlag("throws", throws);
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
    const answer = this.#asked.decide(call, this.#time());
    if (throws !== true) return answer as Answer<S, Decision>;
    const settle = (decision: Decision): Decision => {
      if (!decision.ok) throw new RateLimitError(limit.name, decision);
      return decision;
    };
    return (answer instanceof Promise ? answer.then(settle) : settle(answer)) as Answer<S, Decision>;
  }

  #all(op: "take" | "check", requests: readonly LimitRequest<N>[]): Answer<S, AllDecision> {
    checkRequests(requests);
    // Not map: it leaves out what an array with holes has not.
    const calls = Array.from(requests as readonly LimitRequest<N>[], (request): Call => {
      checkRequest(request);
      const { name, key, count = 1, reserve, config } = request;
      const limit = this.#limit(name, config);
      checkFlag("reserve", reserve);
      return { op, limit, key: checkKey(key), count: checkCount(count), reserve: reserve === true };
    });
    return this.#asked.decideAll(checkSums(calls), this.#time()) as Answer<S, AllDecision>;
  }

  #target(operation: string, name: string, options: Target = NONE): { limit: Limit; key: string | undefined } {
    checkOptions(options);
    checkFields(options, TARGET, operation);
    const { key, config } = options;
    return { limit: this.#limit(name, config), key: checkKey(key) };
  }

  /** The clock that was given, in whole ms; none, where the store's own is to decide. */
  #time(): number | undefined {
    return this.#now === undefined ? undefined : checkNow(this.#now());
  }

  #limit(name: string, config: Config | undefined): Limit {
    const limit = this.#defined.of(name, config);
    if (config !== undefined && this.#leases !== undefined) refuseShards(limit);
    return limit;
  }
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
