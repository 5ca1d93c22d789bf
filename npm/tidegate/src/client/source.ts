/** Where tokens come from: a limit of a limiter, or a private one in memory. */
import { algebra } from "../engine/algebra.ts";
import { checkFields, fieldTable, checkObject } from "../limit/checks.ts";
import { type Config, startNumber } from "../limit/config.ts";
import type { Decision, Op, State } from "../limit/decision.ts";
import { configOf, Evaluator } from "../limit/evaluator.ts";
import { fractionOf } from "../limit/hash.ts";
import { checkCount, checkKey, checkNow } from "../limiter/calls.ts";
import { checkDefined, checkLimiter } from "../limiter/check-limiter.ts";
import { type Keyed, keyed, type Value } from "../limiter/options.ts";

/** A limit of a limiter: in memory, or in a store that a fleet shares. */
export type LimitOf<N extends string = string> = Keyed & {
  /** What `defineLimits` returned. */
  readonly limiter: LimiterLike<N>;
  /** The limit's name. */
  readonly name: NoInfer<N>;
};

/** The part of a limiter that is used, whatever its store. Its limits are inferred from `names`. */
export interface LimiterLike<N extends string = string> {
  /** The defined limits, if the limiter lists them: another name is refused immediately. */
  readonly names?: readonly N[] | undefined;
  limit(name: NoInfer<N>, options: Keyed & { count: number; reserve: true }): Decision | Promise<Decision>;
  give(name: NoInfer<N>, options: Keyed & { count: number }): Decision | Promise<Decision>;
  getValue(name: NoInfer<N>, options: Keyed): Value | Promise<Value>;
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
  checkObject("limit", limit, "a config with kind, rate and period, or { limiter, name, key }");
  if (!("limiter" in limit)) return privateSources(limit, now);
  checkFields(limit, LIMIT_OF, "a limit");
  const { limiter, name } = limit;
  const key = checkKey(limit);
  checkLimiter(limiter, "limit", "give");
  checkDefined(name, limiter.names);
  return (own) => sourceOf(limiter, name, own ?? key);
}

/**
 * A private limit, whose states are kept here: a limiter, or a table of keys, would weigh more in a page than all of it.
 * Each key has a window grid of its own.
 */
function privateSources(config: Config, now: () => number): (key?: string) => Source {
  const limit = new Evaluator("throttle", config, algebra());
  const { period, start } = limit.policy;
  const states = new Map<string | undefined, State>();
  /** Drops the state that was looked at longest ago, if it is full: so at most twice the states that are not full are kept. */
  const sweep = (now: number): void => {
    for (const [key, state] of states) {
      states.delete(key);
      if (limit.fullAt(state, now, { start: startOf(key) }) > now) states.set(key, state);
      return;
    }
  };
  const startOf = (key: string | undefined): number =>
    start === undefined ? Math.floor(fractionOf(key ?? "") * period) : startNumber(start);
  return (given) => {
    const key = checkKey(keyed(given));
    const decide = (op: Op, count: number): Decision => {
      const at = checkNow(now());
      const call = { op, count: checkCount(count), reserve: op === "take" };
      const { decision, state } = limit.evaluate(states.get(key) ?? null, call, at, { start: startOf(key) });
      sweep(at);
      if (state !== null) states.set(key, state);
      return decision;
    };
    return {
      name: limit.name,
      take: (count) => decide("take", count),
      give: (count) => decide("give", count),
      value() {
        const { value, ts } = decide("check", 0);
        return { value, ts, config: configOf(limit.policy, startOf(key)) };
      },
    };
  };
}

const sourceOf = (limiter: LimiterLike, name: string, key: string | undefined): Source => ({
  name,
  take: (count) => limiter.limit(name, { count, reserve: true, ...keyed(key) }),
  give: (count) => limiter.give(name, { count, ...keyed(key) }),
  value: () => limiter.getValue(name, keyed(key)),
});
