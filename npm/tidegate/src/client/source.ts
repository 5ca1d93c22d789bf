import type { Config } from "../limit/config.ts";
import { checkFields, fieldTable } from "../limit/checks.ts";
import type { Decision } from "../limit/decision.ts";
import { InputError } from "../limit/errors.ts";
import { configOf, Limit } from "../limit/limit.ts";
import type { Value } from "../limiter/limiter.ts";
import { checkCount, checkDefined, checkKey, checkNow, type Keyed, keyed } from "../limiter/options.ts";
import type { Call } from "../stores/contract.ts";
import { MemoryStore } from "../stores/memory.ts";

/** A limit of a limiter: in memory, or in a store that a fleet shares. */
export interface LimitOf<N extends string = string> {
  /** What `defineLimits` returned. */
  readonly limiter: LimiterLike<N>;
  /** The limit's name. */
  readonly name: N;
  /** The limit's key; default one limit for all. */
  readonly key?: string | undefined;
}

/** The part of a limiter that is used, whatever its store. */
export interface LimiterLike<N extends string = string> {
  /** The defined limits, if the limiter lists them: another name is refused immediately. */
  readonly names?: readonly N[] | undefined;
  limit(name: N, options: Keyed & { count: number; reserve: true }): Decision | Promise<Decision>;
  give(name: N, options: Keyed & { count: number }): Decision | Promise<Decision>;
  getValue(name: N, options: Keyed): Value | Promise<Value>;
}

/** Where tokens come from: a config, for a private limit in memory; or a limit of a limiter. */
export type ConfigOrLimit<N extends string = string> = Config | LimitOf<N>;

/** One limit and key. Its calls all return values, or all return promises. */
export interface Source {
  /** For errors. */
  readonly name: string;
  /** Takes tokens, reserving those that are not due yet. */
  take(count: number): Decision | Promise<Decision>;
  give(count: number): Decision | Promise<Decision>;
  value(): Value | Promise<Value>;
}

const LIMIT_OF = fieldTable("limiter", "name", "key");

/** Checks the limit once; the returned function makes a source for each key. */
export function sourcesOf<N extends string>(limit: ConfigOrLimit<N>, now: () => number): (key?: string) => Source {
  if (typeof limit !== "object" || limit === null) {
    throw new InputError("policy", "a config with kind, rate and period, or { limiter, name, key }", limit);
  }
  if (!("limiter" in limit)) return privateSources(limit, now);
  checkFields(limit, LIMIT_OF, "a limit");
  const { limiter, name, key } = limit;
  if (typeof limiter?.limit !== "function" || typeof limiter.give !== "function") {
    throw new InputError("limiter", "what defineLimits returns", limiter);
  }
  if (typeof name !== "string") throw new InputError("name", "the name of a limit", name);
  checkDefined(name, limiter.names);
  if (key !== undefined && typeof key !== "string") throw new InputError("key", "a string", key);
  return (own) => sourceOf(limiter as unknown as LimiterLike, name, own ?? key);
}

/** A private limit in memory. It needs no limiter, whose leases and breakers would weigh more in a page than all of it. */
function privateSources(config: Config, now: () => number): (key?: string) => Source {
  const limit = new Limit("throttle", config);
  const store = new MemoryStore();
  return (key) => {
    const decide = (op: "take" | "give", count: number): Decision => {
      const call: Call = { op, limit, key: checkKey(keyed(key)), count: checkCount(count), reserve: op === "take" };
      return store.decide(call, checkNow(now()));
    };
    return {
      name: limit.name,
      take: (count) => decide("take", count),
      give: (count) => decide("give", count),
      value: () => ({ ...store.getValue(limit, checkKey(keyed(key)), checkNow(now())), config: configOf(limit, key) }),
    };
  };
}

const sourceOf = (limiter: LimiterLike, name: string, key: string | undefined): Source => ({
  name,
  take: (count) => limiter.limit(name, { ...keyed(key), count, reserve: true }),
  give: (count) => limiter.give(name, { ...keyed(key), count }),
  value: () => limiter.getValue(name, keyed(key)),
});
