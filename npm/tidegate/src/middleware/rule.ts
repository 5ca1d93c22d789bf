/** The rules of the options: which limits a request takes from, whose, how many tokens. */
import { boundedKey } from "../http/key.ts";
import type { Config } from "../limit/config.ts";
import { checkFields, checkFlag, fieldTable, checkObject, type Table } from "../limit/checks.ts";
import { InputError } from "../limit/errors.ts";
import { callLimit } from "../limit/limit.ts";
import { MAX_REQUESTS } from "../limiter/calls.ts";
import { checkDefined } from "../limiter/check-limiter.ts";
import { keyed, type LimitRequest } from "../limiter/options.ts";
import type { Incoming } from "./client-key.ts";
import { type Count, countOf } from "./count.ts";
import { refuseForeign } from "./foreign-options.ts";
import { follow, type MaybePromise, together } from "../limit/maybe-promise.ts";
import { ignoreRejection } from "../limit/notify.ts";
import { isSelection, type Selection } from "./selection.ts";

export interface RuleOptions<R> {
  /**
   * Whose limit: a string, or a function of the request that returns one; `false` for one limit that all requests share.
   * Default: the client's address. Take it from verified data. A key longer than 1024 bytes is hashed. A function that
   * returns `undefined` or `""` fails the request: return `clientIp(request)` of `tidegate/http` for anonymous clients.
   */
  key?: string | false | ((request: R) => MaybePromise<string>) | undefined;
  /** Tokens that a request takes: 0 to 2^40; default 1. */
  count?: Count<R> | undefined;
  /** Grant ahead of time: the handler runs immediately and has to wait for the decision's `retryAt` itself. */
  reserve?: boolean | undefined;
}

/** A limit that is defined at the middleware, under any name. */
export interface InlineRule<R> extends RuleOptions<R> {
  /** What its state is stored under: 1 to 64 characters of `A-Z a-z 0-9 _ . -`. */
  name: string | ((request: R) => MaybePromise<string>);
  /** The limit itself, or a function that returns the one of a request. */
  config: Config | ((request: R) => MaybePromise<Config>);
}

/** A limit of `defineLimits`, by name. */
export interface NamedRule<R, N extends string> extends RuleOptions<R> {
  /** The limit's name; a function chooses one for each request, such as a plan's. */
  name: N | ((request: R) => MaybePromise<N>);
  /** A function that returns another limit for some requests, and `undefined` if the defined one holds. */
  config?: ((request: R) => MaybePromise<Config | undefined>) | undefined;
}

/** One limit on a request: which, whose, how many tokens. */
export type Rule<R, N extends string> = InlineRule<R> | NamedRule<R, N>;

/** Several limits: the same for all requests, a function of the request, or policies (`definePolicies`). */
export type Several<R, N extends string> =
  | readonly Rule<R, N>[]
  | ((request: R) => MaybePromise<readonly Rule<R, N>[]>)
  | Selection<R>;

export const RULE: Table = fieldTable("name", "key", "count", "reserve", "config");
export const RULE_FIELDS: readonly string[] = Object.keys(RULE);

/** Returns the limiter's request for a request of the framework. */
type CompiledRule<R> = (request: R, incoming: Incoming) => MaybePromise<LimitRequest<string>>;

/** For the check of the name where a function returns the config. */
const STAND_IN: Config = { kind: "token bucket", rate: 1, period: 1 };

/** Checks the values of a rule once, against the limits that are defined. */
function compileRule<R>(
  rule: Rule<R, string>,
  names: readonly string[] | undefined,
  address: (incoming: Incoming) => string,
): CompiledRule<R> {
  const {
    name,
    key,
    count = 1,
    reserve,
    config,
  } = rule as Omit<NamedRule<R, string>, "config"> & Partial<InlineRule<R>>;
  if (typeof name !== "string" && typeof name !== "function")
    throw new InputError("name", "a limit's name, or a function", name);
  if (typeof name === "string" && config === undefined) checkDefined(name, names);
  if (key === "" || (key !== undefined && key !== false && typeof key !== "string" && typeof key !== "function")) {
    throw new InputError("key", "a string that is not empty, a function of the request, or false", key);
  }
  checkFlag("reserve", reserve);
  // Throws for a wrong name or config now, not at the first request.
  if (config !== undefined) {
    callLimit(typeof name === "string" ? name : "config", typeof config === "function" ? STAND_IN : config);
  }
  const keyOf = compileKey(key, address);
  const counted = countOf(count);
  const nameOf = typeof name === "function" ? name : () => name;
  const configOf = typeof config === "function" ? config : () => config;
  const extras = reserve !== undefined || config !== undefined;
  // Without the field if the limit has no key: the limiter refuses an undefined one.
  const taking = (name: string, key: string | undefined, count: number): LimitRequest<string> =>
    key === undefined ? { name, count } : { name, key, count };
  // The usual rule: nothing is made for each request but what is taken.
  if (!extras && typeof name === "string" && typeof count === "number") {
    const take = (key: string | undefined): LimitRequest<string> => taking(name, key, count);
    return (request, incoming) => follow(keyOf(request, incoming), take);
  }
  return (request, incoming) =>
    follow(keyOf(request, incoming), (key) =>
      follow(counted(request, incoming), (count) =>
        follow(nameOf(request), (name) => {
          if (!extras) return taking(name, key, count);
          return follow(configOf(request), (config) => {
            if (config === undefined && names?.includes(name) === false) throw noConfig(name);
            return { name, count, reserve, config, ...keyed(key) };
          });
        }),
      ),
    ) as MaybePromise<LimitRequest<string>>;
}

const noConfig = (name: string): InputError =>
  new InputError("config", `a limit, from the config function: none is defined as ${JSON.stringify(name)}`, undefined);

function compileKey<R>(
  key: RuleOptions<R>["key"],
  address: (incoming: Incoming) => string,
): (request: R, incoming: Incoming) => MaybePromise<string | undefined> {
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
  return (request) => follow(key(request), checked);
}

/** What a request takes: from one limit, or from several all or nothing; of none, it is not limited. */
export type Taken = LimitRequest<string> | readonly LimitRequest<string>[];

export const isOne = (taken: Taken): taken is LimitRequest<string> => !Array.isArray(taken);

export type Choose<R> = (request: R, incoming: Incoming) => MaybePromise<Taken>;

/** Checks the rules in the options once, and returns the function that chooses what a request takes. */
export function compileRules<R>(
  options: { readonly limits?: Several<R, string> | undefined },
  names: readonly string[] | undefined,
  address: (incoming: Incoming) => string,
  shadow: boolean,
): Choose<R> {
  const { limits } = options;
  if (limits === undefined) return compileRule(options as Rule<R, string>, names, address);
  if (isSelection<R>(limits)) return (request, incoming) => limits.select(request, incoming, address, shadow);
  const compiled = (rules: unknown): CompiledRule<R>[] =>
    rulesIn<R>(rules).map((rule) => compileRule(rule, names, address));
  const takenBy = (rules: readonly CompiledRule<R>[], request: R, incoming: Incoming): MaybePromise<Taken> => {
    const taken: MaybePromise<LimitRequest<string>>[] = [];
    try {
      for (const rule of rules) taken.push(rule(request, incoming));
    } catch (error) {
      // An earlier rule's promise is not awaited then: its rejection would end the process.
      taken.forEach(ignoreRejection);
      throw error;
    }
    return together(taken);
  };
  if (typeof limits === "function") {
    return (request, incoming) => follow(limits(request), (rules) => takenBy(compiled(rules), request, incoming));
  }
  const rules = compiled(limits);
  return (request, incoming) => takenBy(rules, request, incoming);
}

function rulesIn<R>(limits: unknown): Rule<R, string>[] {
  if (!Array.isArray(limits))
    throw new InputError("limits", "an array of rules, a function that returns one, or policies", limits);
  if (limits.length === 0 || limits.length > MAX_REQUESTS) {
    const got = limits.length === 0 ? "0; use `skip` for requests without a limit" : String(limits.length);
    throw new InputError("limits", `1 to ${MAX_REQUESTS} rules`, limits, got);
  }
  // Not by `forEach`, which skips the holes of an array.
  for (const rule of limits) {
    checkObject("limits", rule, "rules with a name");
    refuseForeign(rule, RULE);
    checkFields(rule, RULE, "a rule");
  }
  return limits as Rule<R, string>[];
}
