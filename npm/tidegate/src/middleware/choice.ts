/** Which limits a request takes from, by the options: one rule, several, those that a function returns, or a selection. */
import { InputError } from "../limit/errors.ts";
import { follow, type Pending, together } from "../limit/pending.ts";
import { type LimitRequest, MAX_REQUESTS } from "../limiter/options.ts";
import type { Incoming } from "./client.ts";
import type { Several } from "./options.ts";
import { type CompiledRule, compile, type Rule, RULE_FIELDS } from "./rule.ts";
import { isSelection } from "./selection.ts";

/** What a request takes: from one limit, or from several all or nothing; of none, it is not limited. */
export type Taken = LimitRequest<string> | readonly LimitRequest<string>[];

export const isOne = (taken: Taken): taken is LimitRequest<string> => !Array.isArray(taken);

/** Chooses what a request takes. */
export type Choose<R> = (request: R, incoming: Incoming) => Pending<Taken>;

/** Checks the rules in the options once, and returns the function that chooses. */
export function chooserOf<R>(
  options: { readonly limits?: Several<R, string> | undefined },
  names: readonly string[] | undefined,
  address: (incoming: Incoming) => string,
  shadow: boolean,
): Choose<R> {
  const { limits } = options;
  if (limits === undefined) return compile(ruleOf<R>(options), names, address);
  if (isSelection<R>(limits)) return (request, incoming) => limits.select(request, incoming, address, shadow);
  const compiled = (rules: unknown): CompiledRule<R, string>[] =>
    rulesIn<R>(rules).map((rule) => compile(rule, names, address));
  const takenBy = (rules: readonly CompiledRule<R, string>[], request: R, incoming: Incoming): Pending<Taken> =>
    together(rules.map((rule) => rule(request, incoming)));
  if (typeof limits === "function") {
    return (request, incoming) => follow(limits(request), (rules) => takenBy(compiled(rules), request, incoming));
  }
  const rules = compiled(limits);
  return (request, incoming) => takenBy(rules, request, incoming);
}

/** The rule that the options themselves are. */
function ruleOf<R>(options: object): Rule<R, string> {
  const given = options as Record<string, unknown>;
  return Object.fromEntries(
    RULE_FIELDS.filter((field) => Object.hasOwn(given, field)).map((field) => [field, given[field]]),
  ) as unknown as Rule<R, string>;
}

function rulesIn<R>(limits: unknown): Rule<R, string>[] {
  if (!Array.isArray(limits))
    throw new InputError("limits", "an array of rules, a function that returns one, or policies", limits);
  if (limits.length === 0 || limits.length > MAX_REQUESTS) {
    const got = limits.length === 0 ? "0; use `skip` for requests without a limit" : String(limits.length);
    throw new InputError("limits", `1 to ${MAX_REQUESTS} rules`, limits, got);
  }
  // Not `map`, which skips the holes of an array.
  return Array.from(limits as readonly Rule<R, string>[]);
}
