/** Keys of policies as people read and write them. */
import type { Config } from "../limit/config.ts";
import { InputError } from "../limit/errors.ts";
import { checkRules, type KeyValues, policyTarget, type Rules } from "./target.ts";

/** The keys of policies as people read and write them. Made by {@link keysOfPolicies}. */
export interface PolicyKeys {
  /** The rules in force without tiers: the numbers of a key's tier are in its requests alone. */
  readonly names: readonly string[];
  /** The limiter's options for a key's text. Throws an `InputError` if it is none of the rule's. */
  target(name: string, text: string | undefined): { readonly key?: string; readonly config: Config };
  /** The text of a limiter's key: the value of a rule's only `limit_keys`; of several, an array in JSON. */
  text(name: string, key: string): string;
}

/** A key that is too long to be stored: it is listed, and named, by its hash. */
export const HASHED: RegExp = /^sha256:[\da-f]{64}$/;

/** The values of a key that `policyKey` made; `undefined` if it is hashed, or none of its. */
function valuesOf(key: string): (string | null)[] | undefined {
  const values: (string | null)[] = [];
  let at = 0;
  while (at < key.length) {
    if (key[at] === "-") {
      values.push(null);
      at += 1;
      continue;
    }
    const [head = "", length = ""] = /^(\d+):/.exec(key.slice(at, at + 6)) ?? [];
    const end = at + head.length + Number(length);
    if (head === "" || end > key.length) return undefined;
    values.push(key.slice(at + head.length, end));
    at = end;
  }
  return values;
}

/** The values that a string has as an array in JSON. */
function arrayIn(text: string): readonly (string | null)[] | undefined {
  if (!text.startsWith("[")) return undefined;
  try {
    const values: unknown = JSON.parse(text);
    const isValue = (value: unknown): boolean => typeof value === "string" || value === null;
    return Array.isArray(values) && values.every(isValue) ? values : undefined;
  } catch {
    return undefined;
  }
}

/** The text of a key that `policyKey` made; any other key as it is. */
export function textOf(key: string): string {
  const values = valuesOf(key);
  if (values === undefined) return key;
  const [only] = values;
  // A value that reads as one of the other forms is shown in an array.
  const isPlain = values.length === 1 && typeof only === "string" && arrayIn(only) === undefined;
  return isPlain && only !== "" && !HASHED.test(only) ? only : JSON.stringify(values);
}

/**
 * The keys of policies as text, for a page or a command: `203.0.113.7` for a rule with one of `limit_keys`, and
 * `["acme",null]` for one with several, where `null` is a value that the request lacks. A hashed key is shown as its hash.
 *
 * ```ts
 * const { limits, fetch } = createConsole(policies.limiter, { authorize, keys: keysOfPolicies(policies) });
 * ```
 */
export function keysOfPolicies(
  policies: Rules & { readonly names: readonly string[]; tiersOf(name: string): readonly string[] },
): PolicyKeys {
  checkRules(policies);
  return {
    get names() {
      return policies.names.filter((name) => policies.tiersOf(name).length === 0);
    },
    target(name, text) {
      if (policies.tiersOf(name).length > 0) {
        throw new InputError("name", "a rule without tiers: what a key's tier allows is not stored", name);
      }
      const isHash = text !== undefined && HASHED.test(text) && policies.limitKeysOf(name).length > 0;
      if (isHash) return { key: text, config: policies.configOf(name) };
      const values: KeyValues | undefined = text === undefined ? undefined : (arrayIn(text) ?? text);
      const { name: _, ...target } = policyTarget(policies, { name, key: values });
      return target;
    },
    text: (_, key) => textOf(key),
  };
}
