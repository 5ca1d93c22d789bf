import { checkFields, fieldTable } from "./config.ts";
import { InputError } from "./errors.ts";
import { Limit } from "./limit.ts";

/** What {@link jitter} is told. */
export interface JitterOptions {
  /** Whose wait it is: the same identity gets the same jitter, so asking again does not shorten it. */
  key: string;
  /** The most that is added, as a fraction of the wait: 0 to 1; default 0.5. */
  fraction?: number | undefined;
}

const OPTIONS = fieldTable("key", "fraction");
let spread: Limit | undefined;

/**
 * A time to come back at, spread so that clients that were denied together do not come back together: from `retryAt` up
 * to `fraction` of the wait later. Never earlier than `retryAt`, and the same for the same identity and time.
 *
 * ```ts
 * const at = jitter(decision, { key: userId });
 * ```
 *
 * Returns epoch ms, or `undefined` where the decision has no `retryAt`.
 */
export function jitter(
  decision: { retryAt?: number | undefined; retryAfter?: number | undefined },
  options: JitterOptions,
): number | undefined {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object with key", options);
  checkFields(options, OPTIONS, "jitter");
  const { key, fraction = 0.5 } = options;
  if (typeof key !== "string") throw new InputError("key", "a string", key);
  if (typeof fraction !== "number" || !(fraction >= 0 && fraction <= 1)) {
    throw new InputError("fraction", "a number from 0 to 1", fraction);
  }
  if (typeof decision !== "object" || decision === null) throw new InputError("decision", "a decision", decision);
  const { retryAt, retryAfter } = decision;
  if (retryAt === undefined || retryAfter === undefined) return undefined;
  for (const [field, time] of [
    ["retryAt", retryAt],
    ["retryAfter", retryAfter],
  ] as const) {
    if (typeof time !== "number" || !Number.isFinite(time)) throw new InputError(field, "a finite number of ms", time);
  }
  // The engine's own hash of an identity: where the key's grid of windows would start, as a part of a period.
  spread ??= new Limit("jitter", { kind: "fixed window", rate: 1, period: SPREAD });
  // A key of any length goes in piece by piece, each with the hash of those before it.
  let hash = spread.start(`${retryAt}`);
  for (let at = 0; at < key.length; at += PIECE) hash = spread.start(`${hash} ${key.slice(at, at + PIECE)}`);
  const part = hash / SPREAD;
  return retryAt + Math.floor(part * Math.max(retryAfter, 0) * fraction);
}

const SPREAD = 2 ** 32;
/** Characters: with the hash before them fewer bytes than a key may have. */
const PIECE = 300;
