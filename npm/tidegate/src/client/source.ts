import { checkDefined } from "../limiter/options.ts";
import { type Config, checkFields, fieldTable } from "../limit/config.ts";
import type { Decision } from "../limit/decision.ts";
import { InputError } from "../limit/errors.ts";
import { defineLimits, type Value } from "../limiter/limiter.ts";

/** A limit of a limiter: in memory, or in a store that a whole fleet shares. */
export interface LimitOf<N extends string = string> {
  /** What `defineLimits` returned. */
  readonly limiter: LimiterLike<N>;
  /** The limit's name. */
  readonly name: N;
  /** Whose limit; default one that all share. */
  readonly key?: string | undefined;
}

/** What is used of a limiter, whatever its store. */
export interface LimiterLike<N extends string = string> {
  /** The limits there are, where it tells: another name is refused at once. */
  readonly names?: readonly N[] | undefined;
  limit(name: N, options: { key?: string | undefined; count: number; reserve: true }): Decision | Promise<Decision>;
  give(name: N, options: { key?: string | undefined; count: number }): Decision | Promise<Decision>;
  getValue(name: N, options: { key?: string | undefined }): Value | Promise<Value>;
}

/** Where tokens come from: a policy, for a limit of one's own in memory; or a limit of a limiter. */
export type Policy<N extends string = string> = Config | LimitOf<N>;

/** Where a queue's tokens come from: one limit and key. Answers come at once, or as promises, always the same way. */
export interface Source {
  /** For errors. */
  readonly name: string;
  /** Takes tokens, ahead of time where it must. */
  take(count: number): Decision | Promise<Decision>;
  give(count: number): Decision | Promise<Decision>;
  value(): Value | Promise<Value>;
}

const LIMIT_OF = fieldTable("limiter", "name", "key");
const OWN = "throttle";

/** Checks a policy once; what it returns makes a source for each key. */
export function sourcesOf<N extends string>(policy: Policy<N>, now: () => number): (key?: string) => Source {
  if (typeof policy !== "object" || policy === null) {
    throw new InputError("policy", "a config with kind, rate and period, or { limiter, name, key }", policy);
  }
  if (!("limiter" in policy)) {
    const limiter = defineLimits({ [OWN]: policy }, { now });
    return (key) => sourceOf({ limiter: limiter as LimiterLike, name: OWN, key });
  }
  checkFields(policy, LIMIT_OF, "a limit");
  const { limiter, name, key } = policy;
  if (typeof limiter?.limit !== "function" || typeof limiter.give !== "function") {
    throw new InputError("limiter", "what defineLimits returns", limiter);
  }
  if (typeof name !== "string") throw new InputError("name", "the name of a limit", name);
  checkDefined(name, limiter.names);
  if (key !== undefined && typeof key !== "string") throw new InputError("key", "a string", key);
  return (own) => sourceOf({ limiter: limiter as unknown as LimiterLike, name, key: own ?? key });
}

function sourceOf({ limiter, name, key }: LimitOf): Source {
  return {
    name,
    take: (count) => limiter.limit(name, { key, count, reserve: true }),
    give: (count) => limiter.give(name, { key, count }),
    value: () => limiter.getValue(name, { key }),
  };
}
