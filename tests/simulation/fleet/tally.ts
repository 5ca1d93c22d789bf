/** The counts of a run, by an observer of every server and every response. */
import type { Decision, State } from "tidegate";
import { decode, Limit, pool } from "tidegate/store";
import type { Change } from "../engine/lua.ts";
import type { Request } from "./demand.ts";
import { SpanMeter, SumMeter } from "./meter.ts";
import type { Step } from "./network.ts";
import type { Name } from "./node.ts";
import { type Bucket, configOf, earned, type Scenario, shardsOf } from "./scenario.ts";
import { EPOCH_MS } from "../engine/world.ts";

/** Tokens on the most frequent key at one node. */
export interface Hot {
  requested: number;
  granted: number;
  /** Granted by one bucket in one place that receives every request as it arrives. */
  ideal: number;
}

interface OfKey {
  readonly taken: SpanMeter;
  readonly granted: SumMeter;
  readonly heard: SpanMeter;
  ideal: State | null;
}

const PLACE = /^tidegate:(limit|other)(?:\/(\d+))?:k(\d+)$/;
const NEVER = Number.NEGATIVE_INFINITY;
/** 53 bits of a large value leave about this many tokens of rounding. */
const GRAIN = 1e-9;

export class Tally {
  readonly limit: Limit;
  readonly hot: Hot[];
  calls = 0;
  granted = 0;
  denied = 0;
  failed = 0;
  lost = 0;
  late = 0;
  trips = 0;
  steps = 0;
  /** Tokens of granted requests, and of those that one bucket would have granted. */
  tokens = 0;
  ideal = 0;
  /** Tokens that left the servers, and that were given back. */
  taken = 0;
  given = 0;
  /** Script calls after which the two limits of `pairs` had taken different numbers of tokens. */
  torn = 0;
  over = NEVER;
  overTogether = NEVER;
  burst = NEVER;
  readonly retries = { exact: 0, early: 0, late: 0 };
  readonly waits: number[] = [];
  readonly #scenario: Scenario;
  readonly #keys = new Map<number, OfKey>();
  readonly #shards = new Map<string, SpanMeter>();
  readonly #shard: Bucket;
  readonly #one: Limit;
  readonly #states = new Map<string, State>();
  #latest = EPOCH_MS;

  constructor(scenario: Scenario) {
    const { limit, mode, nodes } = scenario;
    const shards = shardsOf(mode);
    this.#scenario = scenario;
    this.limit = new Limit("limit", configOf(limit, shards));
    this.#one = new Limit("limit", configOf(limit, 1));
    this.#shard = { ...limit, rate: limit.rate / shards, capacity: limit.capacity / shards };
    this.hot = Array.from({ length: nodes }, () => ({ requested: 0, granted: 0, ideal: 0 }));
  }

  /** A request arrived at a running node. */
  arrived({ key, count, node }: Request, now: number): void {
    this.calls++;
    const of = this.#of(key);
    const { decision, state } = this.#one.evaluate(of.ideal, { op: "take", count, reserve: false }, now);
    of.ideal = state;
    const ideal = decision.ok ? count : 0;
    this.ideal += ideal;
    const hot = this.hot[node] as Hot;
    if (key === 0) {
      hot.requested += count;
      hot.ideal += ideal;
    }
  }

  /** A script call ran. */
  stepped({ keys, changes, now }: Step): void {
    this.trips++;
    this.steps += keys.length;
    this.#latest = Math.max(this.#latest, now);
    const taken: Record<Name, number> = { limit: 0, other: 0 };
    for (const change of changes) {
      const [, name = "limit", shard, key] = PLACE.exec(change.key) ?? [];
      if (key === undefined) throw new Error(`a script call wrote ${change.key}`);
      const tokens = this.#tokens(change, name as Name, now);
      taken[name as Name] += tokens;
      if (name === "limit") this.#count(Number(key), shard, tokens, now);
    }
    if (this.#scenario.mode.name === "pairs" && Math.abs(taken.limit - taken.other) > GRAIN * 1e3) this.torn++;
  }

  /** How many tokens a change took: the algebra's rule, written independently of the core. */
  #tokens({ key, before, after }: Change, name: Name, now: number): number {
    const { limit, mode } = this.#scenario;
    const rule = shardsOf(mode) > 1 ? this.#shard : name === "other" ? { ...limit, rate: limit.rate / 2 } : limit;
    const was = before === undefined ? undefined : decode(before);
    const is = after === undefined ? undefined : decode(after);
    if (is === undefined) this.#states.delete(key);
    else this.#states.set(key, is);
    const had = was === undefined ? rule.capacity : Math.min(was.value + earned(rule, was.ts, now), rule.capacity);
    return had - (is?.value ?? rule.capacity);
  }

  #count(key: number, shard: string | undefined, tokens: number, now: number): void {
    const { limit } = this.#scenario;
    const { taken } = this.#of(key);
    const of = shard === undefined ? undefined : this.#shardOf(`${shard}:${key}`);
    if (tokens > GRAIN) {
      this.taken += tokens;
      const over = taken.add(limit, tokens, now);
      if (of === undefined) this.over = Math.max(this.over, over);
      else {
        this.overTogether = Math.max(this.overTogether, over);
        this.over = Math.max(this.over, of.add(this.#shard, tokens, now));
      }
    } else if (tokens < -GRAIN) {
      this.given -= tokens;
      taken.remove(limit, -tokens, now);
      of?.remove(this.#shard, -tokens, now);
    }
  }

  /** A request was answered; `server` is the servers' clock. */
  answered(
    request: Request,
    decision: Decision,
    at: { called: number; now: number; server: number; late: boolean },
  ): void {
    if (at.late) this.late++;
    if (decision.degraded === true) this.failed++;
    else {
      this.waits.push(at.now - request.at);
      if (decision.ok) this.#grant(request);
      else {
        this.denied++;
        this.#checkRetryAt(request, decision, at.server);
      }
    }
  }

  #grant({ key, count, node }: Request): void {
    const { limit, mode } = this.#scenario;
    this.granted++;
    this.tokens += count;
    const of = this.#of(key);
    const over = of.granted.add(limit, count, EPOCH_MS, this.#latest);
    this.burst = Math.max(this.burst, of.heard.add(limit, count, this.#latest));
    if (shardsOf(mode) > 1) this.overTogether = Math.max(this.overTogether, over);
    else this.over = Math.max(this.over, over);
    if (key === 0) (this.hot[node] as Hot).granted += count;
  }

  /** Whether `retryAt` is the first ms at which the servers would grant it, without other requests. */
  #checkRetryAt({ key, count }: Request, { retryAt }: Decision, server: number): void {
    const { mode, limit } = this.#scenario;
    // Parts that are taken from several shards add up to the count within this tolerance: both times are correct.
    const rounding = shardsOf(mode) > 1 ? shardsOf(mode) * Number.EPSILON * Math.max(limit.capacity, count) : 0;
    // A lease counts its own tokens, which no observer sees.
    if (retryAt === undefined || mode.name === "lease" || mode.name === "pairs") return;
    const grants = (now: number, count: number): boolean => {
      const call = { op: "take", count, reserve: false } as const;
      if (mode.name !== "shards") return this.limit.evaluate(this.#state(`k${key}`), call, now).decision.ok;
      const states = Array.from({ length: mode.shards }, (_, shard) => this.#state(`k${key}`, shard));
      return pool(this.limit, states, call, now, 0).decision.ok;
    };
    if (!grants(Math.max(retryAt, server), count - rounding)) this.retries.early++;
    else if (retryAt > server && grants(retryAt - 1, count)) this.retries.late++;
    else this.retries.exact++;
  }

  #state(key: string, shard?: number): State | null {
    return this.#states.get(`tidegate:limit${shard === undefined ? "" : `/${shard}`}:${key}`) ?? null;
  }

  #shardOf(place: string): SpanMeter {
    let meter = this.#shards.get(place);
    if (meter === undefined) {
      meter = new SpanMeter();
      this.#shards.set(place, meter);
    }
    return meter;
  }

  #of(key: number): OfKey {
    let of = this.#keys.get(key);
    if (of === undefined) {
      of = { taken: new SpanMeter(), granted: new SumMeter(), heard: new SpanMeter(), ideal: null };
      this.#keys.set(key, of);
    }
    return of;
  }
}
