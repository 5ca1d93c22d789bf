/** Hits and blocks of other packages, as limits of this one. */
import { MAX_COUNT } from "../../engine/generated/bounds.ts";
import type { Config } from "../../limit/config.ts";
import { InputError } from "../../limit/errors.ts";
import { tupleKey } from "../../http/key.ts";

/**
 * A window that counts hits, from a key's first one. Without `max`, each hit is a `charge` on 2^40 tokens. With `max`,
 * each hit is a reservation: the window has no capacity and may owe `max` tokens, so a hit beyond `max` is denied, and a
 * limit that changes finds the hits that there are.
 */
export function window(period: number, max?: number): Config {
  const counted = { kind: "fixed window", rate: MAX_COUNT, period, start: "first request" } as const;
  return max === undefined ? counted : { ...counted, capacity: 0, maxReserved: Math.min(Math.max(max, 0), MAX_COUNT) };
}

/** A block: a bucket without capacity that owes one token for each ms until the block ends. */
export const BLOCK: Config = { kind: "token bucket", rate: 1, period: 1, capacity: 0 };

/** A length of other packages, which accept any number, as integer ms of ours: 0 if no time passes. */
export function wholePeriod(field: string, ms: unknown): number {
  if (typeof ms !== "number" || Number.isNaN(ms)) throw new InputError(field, "a number of ms", ms);
  return Math.min(Math.max(Math.floor(ms), 0), MAX_COUNT);
}

/** The key of a count: the parts of its identity, then the other package's key. */
export function hitKey(key: unknown, ...identity: readonly [string, ...string[]]): string {
  // Other packages accept any value as a key. An object's text is the same for all objects.
  if (typeof key === "symbol" || typeof key === "function" || (typeof key === "object" && key !== null)) {
    throw new InputError("key", "a string, a number or another primitive value", key);
  }
  return tupleKey(...identity, String(key));
}
