/** The limiter's key for the values of a rule's `limit_keys`. */
import { InputError } from "../limit/errors.ts";
import { boundedKey } from "../http/key.ts";

/**
 * The key of a rule whose `limit_keys` have these values in a request, in order; `undefined` is an absent one. Different
 * lists have different keys: each part follows its length, and an absent part differs from an empty one. A key longer
 * than 1024 bytes is hashed, as by `boundedKey`. A rule without keys has none: `undefined`.
 *
 * ```ts
 * policies.limiter.reset("api", { key: policyKey("acme", undefined), config: policies.configOf("api") });
 * ```
 *
 * Throws an `InputError` if a part is neither a string nor `undefined`.
 */
export function policyKey(...parts: readonly (string | undefined)[]): string | undefined {
  if (parts.length === 0) return undefined;
  let key = "";
  for (let i = 0; i < parts.length; i++) {
    const part: unknown = parts[i];
    if (part !== undefined && typeof part !== "string") {
      throw new InputError(`parts[${i}]`, "a string, or undefined for a part that the request lacks", part);
    }
    key += part === undefined ? "-" : `${part.length}:${part}`;
  }
  return boundedKey(key);
}
