/** Finds the limit and the key that an operator names. */
import { addressKey } from "../http/address.ts";
import { withoutPort } from "../http/forwarded.ts";
import { checkFields, checkObject, fieldTable, hasMethods } from "../limit/checks.ts";
import type { Config } from "../limit/config.ts";
import { InputError, show } from "../limit/errors.ts";
import type { LimitRequest } from "../limiter/options.ts";
import { policyKey } from "./key.ts";

/** The values of a rule's `limit_keys`, in order: `null` for one that the request lacks; a string is the only value. */
export type KeyValues = string | readonly (string | null)[];

/** One key of a rule, by the values of its `limit_keys`. */
export interface PolicyTarget {
  /** The rule's name. */
  readonly name: string;
  /** Left out if the rule's `limit_keys` are empty. */
  readonly key?: KeyValues | undefined;
  /** The tier whose numbers apply; without one, or if the rule has no such tier, the rule's own. */
  readonly tier?: string | undefined;
}

const FIELDS = fieldTable("name", "key", "tier");

/** The policies in force, as far as {@link policyTarget} reads them. */
export interface Rules {
  limitKeysOf(name: string): readonly string[];
  configOf(name: string, tier?: string): Config;
}

/** Throws an `InputError` if it is not policies. */
export function checkRules(policies: Rules): void {
  if (!hasMethods(policies, "configOf", "limitKeysOf"))
    throw new InputError("policies", "what definePolicies returns", policies);
}

/** The key under which a rule of these `limit_keys` stores its state: an address counts as its client, as in a request. */
export function keyOfValues(
  name: string,
  limitKeys: readonly string[],
  given: KeyValues | undefined,
): string | undefined {
  const values = given === undefined ? [] : typeof given === "string" ? [given] : given;
  if (!Array.isArray(values) || values.length !== limitKeys.length) {
    const rule = JSON.stringify(name);
    const expects =
      limitKeys.length === 0
        ? `left out: all requests share the limit ${rule}`
        : `a value for each of limit_keys of ${rule}, in order: ${limitKeys.join(", ")}`;
    const got = Array.isArray(given) ? `[${given.map((value) => show(value))}]` : show(given);
    throw new InputError("key", expects, given, given === undefined ? "none" : got);
  }
  if (given === "") throw new InputError("key", 'not empty; an empty value is [""]', given);
  return policyKey(
    ...values.map((value: unknown, i) => {
      if (value === null || value === undefined) return undefined;
      if (typeof value === "string") return limitKeys[i] === "ip:address" ? keyOfAddress(value) : value;
      throw new InputError(`key[${i}]`, "a string, or null for a value that the request lacks", value);
    }),
  );
}

/** An address as requests have it; another text, such as `unknown` or a network, as it is. */
function keyOfAddress(text: string): string {
  // With the port each connection would have its own limit.
  if (withoutPort(text) !== text) throw new InputError("key", "an address without port and brackets", text);
  return addressKey(text) ?? text;
}

/**
 * One key of a rule, as the limiter takes it: to read, reset or block it.
 *
 * ```ts
 * const { name, ...target } = policyTarget(policies, { name: "api", key: "203.0.113.7" });
 * await policies.limiter.block(name, { ...target, for: "15m" });
 * ```
 *
 * Throws an `InputError` if no rule has this name, or the values are not those of its `limit_keys`.
 */
export function policyTarget(
  policies: Rules,
  target: PolicyTarget,
): LimitRequest<string> & { readonly config: Config } {
  checkRules(policies);
  checkObject("target", target, "an object, such as { name, key }");
  checkFields(target, FIELDS, "target");
  const { name, key, tier } = target;
  const full = keyOfValues(name, policies.limitKeysOf(name), key);
  const config = policies.configOf(name, tier);
  return full === undefined ? { name, config } : { name, key: full, config };
}
