/** The limiter's key for the values of a rule's `limit_keys`. */
import { boundedKey } from "../http/key.ts";

/**
 * The key of a rule whose `limit_keys` have these values in a request, in order; `undefined` is an absent one. Different
 * lists have different keys: each part follows its length, and an absent part differs from an empty one. A key longer
 * than 1024 bytes is hashed. A rule without keys has none: `undefined`.
 */
export function policyKey(...parts: readonly (string | undefined)[]): string | undefined {
  if (parts.length === 0) return undefined;
  let key = "";
  for (const part of parts) key += part === undefined ? "-" : `${part.length}:${part}`;
  return boundedKey(key);
}
