/** A rule of the options: which limit, whose, how many tokens. */
import { boundedKey } from "../http/key.ts";
import type { Config } from "../limit/config.ts";
import { checkFields, fieldTable, checkObject } from "../limit/checks.ts";
import { InputError } from "../limit/errors.ts";
import { callLimit } from "../limit/limit.ts";
import { checkDefined, keyed, type LimitRequest } from "../limiter/options.ts";
import type { Incoming } from "./client.ts";
import { type Count, countOf } from "./count.ts";
import { refuseForeign } from "./foreign-options.ts";
import { follow, type Pending } from "../limit/pending.ts";

export interface RuleOptions<R> {
  /**
   * Whose limit: a string, or a function of the request that returns one; `false` for one limit that all requests share.
   * Default: the client's address. Take it from verified data. A key longer than 1024 bytes is hashed. A function that
   * returns `undefined` or `""` fails the request: return `clientIp(request)` of `tidegate/http` for anonymous clients.
   */
  key?: string | false | ((request: R) => Pending<string>) | undefined;
  /** Tokens that a request takes: 0 to 2^40; default 1. */
  count?: Count<R> | undefined;
  /** Grant ahead of time: the handler runs immediately and has to wait for the decision's `retryAt` itself. */
  reserve?: boolean | undefined;
}

/** A limit that is defined at the middleware, under any name. */
export interface InlineRule<R> extends RuleOptions<R> {
  /** What its state is stored under: 1 to 64 characters of `A-Z a-z 0-9 _ . -`. */
  name: string | ((request: R) => Pending<string>);
  /** The limit itself, or a function that returns the one of a request. */
  config: Config | ((request: R) => Pending<Config>);
}

/** A limit of `defineLimits`, by name. */
export interface NamedRule<R, N extends string> extends RuleOptions<R> {
  /** The limit's name; a function chooses one for each request, such as a plan's. */
  name: N | ((request: R) => Pending<N>);
  /** A function that returns another limit for some requests, and `undefined` where the defined one holds. */
  config?: ((request: R) => Pending<Config | undefined>) | undefined;
}

/** One limit on a request: which, whose, how many tokens. */
export type Rule<R, N extends string> = InlineRule<R> | NamedRule<R, N>;

export const RULE_FIELDS = ["name", "key", "count", "reserve", "config"] as const;
const RULE = fieldTable(...RULE_FIELDS);

/** Returns the limiter's request for a request of the framework. */
export type CompiledRule<R, N extends string> = (request: R, incoming: Incoming) => Pending<LimitRequest<N>>;

/** Checks a rule once, against the limits that are defined. */
export function compile<R, N extends string>(
  rule: Rule<R, N>,
  names: readonly N[] | undefined,
  address: (incoming: Incoming) => string,
): CompiledRule<R, N> {
  checkObject("limits", rule, "rules with a name");
  refuseForeign(rule, RULE);
  checkFields(rule, RULE, "a rule");
  const { name, key, count = 1, reserve, config } = rule as Omit<NamedRule<R, N>, "config"> & Partial<InlineRule<R>>;
  if (typeof name !== "string" && typeof name !== "function")
    throw new InputError("name", "a limit's name, or a function", name);
  if (typeof name === "string" && config === undefined) checkDefined(name, names);
  if (key === "" || (key !== undefined && key !== false && typeof key !== "string" && typeof key !== "function")) {
    throw new InputError("key", "a string that is not empty, a function of the request, or false", key);
  }
  if (reserve !== undefined && typeof reserve !== "boolean") throw new InputError("reserve", "true or false", reserve);
  // Throws for a wrong config now, not at the first request.
  if (config !== undefined && typeof config !== "function") {
    callLimit(typeof name === "string" ? name : "config", config);
  }
  const keyOf = compileKey(key, address);
  const counted = countOf(count);
  const nameOf = typeof name === "function" ? name : () => name;
  const configOf = typeof config === "function" ? config : () => config;
  const extras = reserve !== undefined || config !== undefined;
  return (request, incoming) =>
    follow(keyOf(request, incoming), (key) =>
      follow(counted(request, incoming), (count) =>
        follow(nameOf(request), (name) => {
          // Without the field where the limit has no key: the limiter refuses an undefined one.
          if (!extras) return key === undefined ? { name, count } : { name, key, count };
          return follow(configOf(request), (config) => {
            if (config === undefined && names?.includes(name as N) === false) throw noConfig(name);
            return { name, count, reserve, config, ...keyed(key) };
          });
        }),
      ),
    ) as Pending<LimitRequest<N>>;
}

const noConfig = (name: string): InputError =>
  new InputError("config", `a limit, from the config function: none is defined as ${JSON.stringify(name)}`, undefined);

function compileKey<R>(
  key: RuleOptions<R>["key"],
  address: (incoming: Incoming) => string,
): (request: R, incoming: Incoming) => Pending<string | undefined> {
  if (key === undefined) return (_, incoming) => address(incoming);
  if (key === false) return () => undefined;
  if (typeof key === "string") {
    const bounded = boundedKey(key);
    return () => bounded;
  }
  const checked = (found: unknown): string => {
    if (typeof found === "string" && found !== "") return boundedKey(found);
    const rule = "a string that is not empty, from the key function; for anonymous clients return clientIp(request)";
    throw new InputError("key", rule, found);
  };
  return (request) => follow(key(request) as Pending<unknown>, checked);
}
