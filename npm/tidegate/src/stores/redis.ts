/**
 * State on a Redis or Valkey server, or a cluster: one script call for the concurrent calls of a process, by the
 * server's clock.
 *
 * @module
 */
// redis/script.ts has the call of the script, clients.ts sends it, pipeline.ts batches it.
import { during } from "#workers";
import { ANY, checkTable, durationFrom, functionThat, msOf } from "../limit/checks.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import type { Duration } from "../limit/duration.ts";
import { InputError } from "../limit/errors.ts";
import { LOOK } from "../limit/evaluator.ts";
import type { Limit } from "../limit/limit.ts";
import { checkLease, type LeaseOptions } from "../limiter/lease/options.ts";
import type { AsyncStore, Call, Deadline, Key, Now } from "./contract.ts";
import { idsOf } from "./failure.ts";
import * as sharded from "./sharded.ts";
import { layers } from "../limiter/layers.ts";
import { combined } from "../limit/combined.ts";
import { type Link, linkTo, type RedisLike } from "./redis/clients.ts";
import { Denials } from "./redis/denials.ts";
import { redisKeyOf, slotOf } from "./redis/key.ts";
import { type Answer, type OnAnswer, Pipeline, type Request, STORE } from "./redis/pipeline.ts";
import { type Action, Rule } from "./redis/script.ts";

export type { BunRedisLike, GlideLike, IoredisLike, NodeRedisLike, RedisLike, RestRedisLike } from "./redis/clients.ts";

/** Settings of {@link redis}. */
export interface RedisOptions {
  /** The first part of every key, without braces. Default `"tidegate:"`. */
  prefix?: string | undefined;
  /**
   * In a cluster, keys with the same tag are in one slot, so that `limitAll` can take from all of them. The tag may be the
   * tenant that the key begins with. Default: no tag; each key is in the slot of its own hash. The same name and key must
   * always have the same tag.
   */
  tag?: ((name: string, key: string | undefined) => string | undefined) | undefined;
  /**
   * How long a denial is repeated without a round trip, at most until its `retryAt`. An integer from 0 (never) to 60,000
   * ms, or a string such as `"1s"`; default 1000. If another process gives tokens back or resets the key, this process notices
   * after that time. The latest 10,000 denied keys are cached.
   */
  rememberDenials?: Duration | undefined;
  /** Takes tokens of hot keys ahead, to answer without a round trip: `true`, or the settings. Default: no. */
  lease?: boolean | LeaseOptions | undefined;
}

/** Denials of limits with more shards than these are not remembered. */
const MOST_SHARDS = 64;
/** Slots that count as one node while the client has not found their master: 64 nodes in all. */
const SLOTS_TOGETHER = 256;

export type { RedisStore };

/** State on a Redis or Valkey server, or a cluster of them. */
class RedisStore implements AsyncStore {
  readonly name: string = STORE;
  readonly sync = false;
  readonly layers: typeof layers = layers;
  /** In a Worker, calls of several requests share a script call. */
  readonly during: AsyncStore["during"] = during;
  readonly lease: RedisOptions["lease"];
  /** The master of a cluster that serves a limit and key; absent if there is one server. */
  readonly nodeOf?: (limit: Limit, key: string | undefined) => string;
  /** Ends when the client has connected for the first time, or has failed to; absent if it is connected. */
  connecting: Promise<unknown> | undefined;
  readonly #link: Link;
  readonly #prefix: string;
  readonly #tag: NonNullable<RedisOptions["tag"]>;
  readonly #pipeline: Pipeline;
  readonly #denials: Denials;
  /** A limit's latest rule: most calls of a limit have the same. */
  readonly #rules = new WeakMap<Limit, Rule>();

  constructor(client: RedisLike, options: RedisOptions = {}) {
    checkTable("redis", options, OPTIONS);
    const { prefix = "tidegate:", tag = () => undefined, rememberDenials = 1000, lease } = options;
    checkLease(lease);
    this.lease = lease;
    this.#prefix = prefix;
    this.#tag = tag;
    this.#link = linkTo(client);
    this.#denials = new Denials(msOf(rememberDenials));
    this.#pipeline = new Pipeline(this.#link, this.#remember);
    if (this.#link.cluster) this.nodeOf = (limit, key) => this.#nodeOf(limit, key);
    this.connecting = this.#link.connecting;
    void this.connecting?.then(() => {
      this.connecting = undefined;
    });
  }

  decide(call: Call, passed: number | undefined, deadline?: Deadline): Promise<Decision> {
    const now = integer(passed);
    if (call.op !== "give") return this.#decide(call, now, deadline);
    return this.#denials.during(this.#keyOf(call.limit, call.key), () => this.#decide(call, now, deadline));
  }

  #decide(call: Call, now: Now, deadline: Deadline): Promise<Decision> {
    if (this.#areApart(call.limit, call.key)) return sharded.decide(this.#shards, call, now, deadline);
    // Not by `#one`, for which each call would make one promise more.
    return new Promise((resolve, reject) => {
      const answered = (answers: readonly Answer[]) => resolve((answers[0] as Answer).decision);
      const requests = [this.#requestOf(call)];
      this.#pipeline.send({ requests, deadline, resolve: answered, reject }, now);
    });
  }

  recall(call: Call, passed: number | undefined): Decision | undefined {
    const { op, limit, key } = call;
    if (op !== "take" && op !== "check") return undefined;
    const now = integer(passed);
    // Only a call that may be denied for ever needs the clock; for the others it is not read.
    const isUsual = call.count <= limit.policy.capacity && !call.reserve;
    const never = isUsual ? undefined : limit.never(call, now ?? this.#pipeline.clock.latest() ?? Date.now());
    if (never !== undefined || this.#denials.none) return never;
    return this.#remembered(this.#keyOf(limit, key), call, limit.start(key), now);
  }

  async decideAll(calls: readonly Call[], passed: number | undefined, deadline?: Deadline): Promise<AllDecision> {
    const requests = calls.map((call) => this.#requestOf(call));
    const { cluster, keyPrefix } = this.#link;
    const slots = cluster ? requests.map(({ redisKey }) => slotOf(keyPrefix + redisKey)) : [];
    if (calls.some(({ limit, key }) => this.#areApart(limit, key)) || slots.some((slot) => slot !== slots[0])) {
      const got = idsOf(calls).join(", ");
      throw new InputError("requests", "about limits of one hash slot: give `redis` a `tag` that they share", got, got);
    }
    const answers = await this.#send(requests, integer(passed), deadline);
    return combined(
      answers.map(({ decision }) => decision),
      (answers[0] as Answer).now,
    );
  }

  async reset(limit: Limit, key: string | undefined, deadline?: Deadline): Promise<void> {
    const reset = { op: "reset", limit, key, count: 0, reserve: false } as const;
    const shards = this.#areApart(limit, key) ? sharded.shardsOf(limit) : [undefined];
    await this.#denials.during(this.#keyOf(limit, key), () =>
      Promise.all(shards.map((shard) => this.#one(reset, shard, undefined, deadline))),
    );
  }

  async getValue(
    limit: Limit,
    key: string | undefined,
    passed: number | undefined,
    deadline?: Deadline,
  ): Promise<State> {
    const now = integer(passed);
    if (this.#areApart(limit, key)) return sharded.getValue(this.#shards, limit, key, now, deadline);
    const answer = await this.#one({ ...LOOK, limit, key }, undefined, now, deadline);
    return limit.project(answer.before, answer.now, limit.start(key));
  }

  async #one(action: Action, shard: number | undefined, now: Now, deadline: Deadline): Promise<Answer> {
    const [answer] = await this.#send([this.#requestOf(action, shard)], now, deadline);
    return answer as Answer;
  }

  #send(requests: readonly Request[], now: Now, deadline: Deadline): Promise<readonly Answer[]> {
    return new Promise((resolve, reject) => {
      this.#pipeline.send({ requests, deadline, resolve, reject }, now);
    });
  }

  #requestOf(action: Action, shard?: number): Request {
    const { limit, key } = action;
    const rule = this.#ruleOf(action, limit.start(key), shard !== undefined);
    return { limit, key, shard, redisKey: this.#keyOf(limit, key, shard), rule };
  }

  #ruleOf(action: Action, start: number, isShard: boolean): Rule {
    const latest = this.#rules.get(action.limit);
    if (latest?.is(action, start, isShard) === true) return latest;
    const rule = new Rule(action, start, isShard);
    this.#rules.set(action.limit, rule);
    return rule;
  }

  #keyOf(limit: Limit, key: Key, shard?: number): string {
    return redisKeyOf(this.#prefix, limit.name, shard, key, this.#tag(limit.name, key));
  }

  /** Whether the shards are on several servers: in a cluster, unless a tag puts them into one slot. */
  #areApart(limit: Limit, key: Key): boolean {
    const { cluster, keyPrefix } = this.#link;
    if (!cluster || limit.policy.shards === 1) return false;
    return this.#tag(limit.name, key) === undefined && !/^[^{]*\{[^}]+\}/.test(keyPrefix);
  }

  /** The shards of a cluster, each on the server of its slot. */
  readonly #shards: sharded.Shards = {
    step: (call, shard, now, deadline) => this.#one(call, shard, now, deadline),
    denied: ({ limit, key }, states, now, sentAt) => {
      if (states.length > MOST_SHARDS) return;
      this.#denials.keep(this.#keyOf(limit, key), { states, passed: now !== undefined, sentAt });
    },
  };

  readonly #remember: OnAnswer = ({ redisKey, shard }, { decision, before }, sentAt, passed) => {
    if (shard !== undefined) return;
    if (decision.ok) this.#denials.forget(redisKey);
    else this.#denials.keep(redisKey, { states: [before], passed, sentAt });
  };

  /** The denial that follows from the latest one on this key, by a clock of the kind that stamped it. */
  #remembered(redisKey: string, call: Call, start: number, now: Now): Decision | undefined {
    const denial = this.#denials.get(redisKey);
    if (denial === undefined || denial.passed !== (now !== undefined)) return undefined;
    const at = now ?? this.#pipeline.clock.latest();
    if (at === undefined) return undefined;
    const { states } = denial;
    const decision =
      states.length === 1
        ? call.limit.evaluate(states[0] ?? null, call, at, { start }).decision
        : sharded.together(call.limit, states, call, at, start);
    if (!decision.ok) return decision;
    this.#denials.forget(redisKey);
    return undefined;
  }

  /** The master that has a limit and key, or the part of the slots that they are in. */
  #nodeOf(limit: Limit, key: Key): string {
    if (this.#areApart(limit, key)) return "the masters of all shards";
    const slot = slotOf(this.#link.keyPrefix + this.#keyOf(limit, key));
    return this.#link.masterOf(slot) ?? `slots from ${slot - (slot % SLOTS_TOGETHER)}`;
  }
}

/** A fractional clock is floored, as the core does. */
const integer = (now: Now): number | undefined => (now === undefined ? undefined : Math.floor(now));

const OPTIONS = {
  prefix: {
    expects: "a string without braces",
    accepts: (prefix: unknown) => typeof prefix === "string" && !/[{}]|\p{Surrogate}/u.test(prefix),
  },
  tag: functionThat("a function of a limit's name and key"),
  rememberDenials: durationFrom(0, 60_000, true),
  lease: ANY,
};

/**
 * A store on your client: ioredis (`Redis`, also with Sentinel, or `Cluster`), node-redis (a client, pool, cluster or
 * sentinel; of version 4 a client), Valkey GLIDE, `Bun.RedisClient`, or a REST client with `eval` and `evalsha` (Upstash,
 * Vercel KV).
 *
 * ```ts
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: redis(new Redis()) });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * Throws an `InputError` if an option is wrong or the client is none of these. Calls reject with a `StoreError`.
 */
export function redis(client: RedisLike, options: RedisOptions = {}): RedisStore {
  return new RedisStore(client, options);
}
