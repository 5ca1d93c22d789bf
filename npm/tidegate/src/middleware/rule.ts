import { checkDefined } from "../limiter/options.ts";
import { checkFields, fieldTable, type Config } from "../limit/config.ts";
import { InputError } from "../limit/errors.ts";
import { boundedKey } from "../http/key.ts";
import type { LimitRequest } from "../limiter/limiter.ts";
import type { Incoming } from "./client.ts";
import { type Cost, statedCost } from "./cost.ts";
import { follow, type Pending } from "./pending.ts";

interface RuleOf<R> {
  /**
   * Whose limit: a string; or a function of the request, `undefined` for the client's address; or `false` for one limit
   * that all share. Default: the client's address. Take it from what you have verified. Longer than 1024 bytes it is hashed.
   */
  key?: string | false | ((request: R) => Pending<string | undefined>) | undefined;
  /** Tokens that a request takes; default 1. */
  cost?: Cost<R> | undefined;
  /** Grant ahead of time: the handler runs at once and has to wait for the decision's `retryAt` by itself. */
  reserve?: boolean | undefined;
}

/** One limit on a request: which, whose, how much. */
export type Rule<R, N extends string> = RuleOf<R> &
  (
    | {
        /** A limit that was defined; a function chooses one per request, such as a plan's. */ name:
          | N
          | ((request: R) => Pending<N>);
        config?: undefined;
      }
    | {
        /** Any name: the limit is defined here. */
        name: string | ((request: R) => Pending<string>);
        /** The limit itself, or a function that tells the one of this request. */
        config: Config | ((request: R) => Pending<Config>);
      }
  );

/** The fields of a rule. */
export const RULE_FIELDS = ["name", "key", "cost", "reserve", "config"] as const;
const RULE = fieldTable(...RULE_FIELDS);

/** A rule, checked: tells what to ask the limiter for a request. */
export type Ask<R, N extends string> = (request: R, incoming: Incoming) => Pending<LimitRequest<N>>;

/** Checks a rule once, against the limits that there are. */
export function compile<R, N extends string>(
  rule: Rule<R, N>,
  names: readonly N[] | undefined,
  address: (incoming: Incoming) => string,
): Ask<R, N> {
  if (typeof rule !== "object" || rule === null) throw new InputError("limits", "rules with a name", rule);
  checkFields(rule, RULE, "a rule");
  const {
    name,
    key,
    cost = 1,
    reserve,
    config,
  } = rule as RuleOf<R> & {
    name: N | ((request: R) => Pending<N>);
    config?: Config | ((request: R) => Pending<Config>);
  };
  if (typeof name !== "string" && typeof name !== "function")
    throw new InputError("name", "a limit's name, or a function", name);
  if (typeof name === "string" && config === undefined) checkDefined(name, names);
  if (key !== undefined && key !== false && typeof key !== "string" && typeof key !== "function") {
    throw new InputError("key", "a string, a function of the request, or false", key);
  }
  if (reserve !== undefined && typeof reserve !== "boolean") throw new InputError("reserve", "true or false", reserve);
  if (
    typeof cost !== "object" &&
    typeof cost !== "function" &&
    !(typeof cost === "number" && cost >= 0 && cost <= 2 ** 40)
  ) {
    throw new InputError(
      "cost",
      "a number of tokens from 0 to 1099511627776, a function, or what the client states",
      cost,
    );
  }
  const keyOf =
    typeof key !== "function"
      ? (_: R, incoming: Incoming) =>
          key === undefined ? address(incoming) : key === false ? undefined : boundedKey(key)
      : (request: R, incoming: Incoming) =>
          follow(key(request), (found) => (found === undefined ? address(incoming) : boundedKey(found)));
  const stated = typeof cost === "object" ? statedCost(cost) : undefined;
  const costOf =
    typeof cost === "function"
      ? cost
      : stated === undefined
        ? () => cost as number
        : (_: R, incoming: Incoming) => stated(incoming);
  const nameOf = typeof name === "function" ? name : () => name;
  const configOf = typeof config === "function" ? config : () => config;
  const extras = reserve !== undefined || config !== undefined;
  return (request, incoming) =>
    follow(keyOf(request, incoming), (key) =>
      follow(costOf(request, incoming), (count) =>
        follow(nameOf(request), (name) => {
          if (!extras) return { name, key, count };
          return follow(configOf(request), (config) => ({ name, key, count, reserve, config }));
        }),
      ),
    );
}
