/** Keys of any length and of several parts. */
import { MAX_KEY_BYTES } from "../engine/generated/bounds.ts";
import { generalizedUtf8 } from "../engine/utf8.ts";
import { InputError } from "../limit/errors.ts";
import { sha256 } from "./sha256.ts";

const HASHED = "sha256:";

/**
 * A key that a limiter accepts: a text of at most 1024 bytes in UTF-8 unchanged, a longer one as `sha256:` and its hash. A
 * text with that prefix is hashed too, so that no client can send the key of another.
 *
 * ```ts
 * limits.limit("api", { key: boundedKey(session.user) });
 * ```
 *
 * Throws an `InputError` if the key is not a string.
 */
export function boundedKey(key: string): string {
  if (typeof key !== "string") throw new InputError("key", "a string", key);
  // A character takes at most three bytes.
  if (key.length * 3 <= MAX_KEY_BYTES && !key.startsWith(HASHED)) return key;
  const bytes = generalizedUtf8(key);
  return bytes.length <= MAX_KEY_BYTES && !key.startsWith(HASHED) ? key : HASHED + sha256(bytes);
}

/**
 * One key of several parts, such as tenant and user. Different tuples have different keys: each part follows its length.
 *
 * ```ts
 * tupleKey("acme", "user 7"); // "4:acme6:user 7"
 * ```
 *
 * Overlong tuples are hashed as by {@link boundedKey}. Throws an `InputError` if a part is not a string.
 */
export function tupleKey(...parts: readonly [string, ...string[]]): string {
  if ((parts as readonly string[]).length === 0)
    throw new InputError("parts", "at least one string", undefined, "none");
  for (const [i, part] of parts.entries()) {
    if (typeof part !== "string") throw new InputError(`parts[${i}]`, "a string", part);
  }
  return boundedKey(parts.map((part) => `${part.length}:${part}`).join(""));
}
