/** Spreads the retries of clients that were denied together. */
import { type Check, check, checkTable, durationFrom, msOf, numberFrom, STRING, checkObject } from "./checks.ts";
import type { Duration } from "./duration.ts";
import { InputError } from "./errors.ts";
import { fractionOf } from "./hash.ts";

/** Settings of {@link jitter}. */
export interface JitterOptions {
  /**
   * The client's identity: it always gets the same share of a wait, so repeating a request does not draw a smaller
   * one.
   */
  key: string;
  /** The most that is added, as a fraction of the wait: 0 to 1; default 0.5. */
  fraction?: number | undefined;
  /** The most that is added: ms from 0, or a string such as `"10s"`; default 30,000. */
  most?: Duration | undefined;
}

export const FRACTION: Check = numberFrom("a number from 0 to 1", 0, 1);
const OPTIONS: Readonly<Record<keyof JitterOptions, Check>> = {
  key: STRING,
  fraction: FRACTION,
  most: durationFrom(0),
};

/** Throws an `InputError` if an option is wrong. */
export function checkJitter(options: JitterOptions): void {
  checkTable("jitter", options, OPTIONS, "an object with key");
  check("key", options.key, STRING);
}

/** The most that is added by default, in ms. */
export const MAX_JITTER_MS = 30_000;

/**
 * Spreads a retry time, so that clients that were denied together do not retry together. The result is at or after `retryAt`,
 * later by at most `fraction` of the wait and at most `most` ms. It is the same for the same decision and key.
 *
 * ```ts
 * const at = jitter(decision, { key: userId });
 * ```
 *
 * Returns epoch ms, or `undefined` if the decision has no `retryAt`. Throws an `InputError` if an argument is wrong.
 */
export function jitter(
  decision: { retryAt?: number | undefined; retryAfter?: number | undefined },
  options: JitterOptions,
): number | undefined {
  checkJitter(options);
  const { key, fraction = 0.5, most = MAX_JITTER_MS } = options;
  checkObject("decision", decision, "a decision");
  const { retryAt, retryAfter } = decision;
  if (retryAt === undefined || retryAfter === undefined) return undefined;
  for (const [field, time] of Object.entries({ retryAt, retryAfter })) {
    if (!Number.isFinite(time)) throw new InputError(field, "a finite number of ms", time);
  }
  const part = fractionOf(`${retryAt} ${key}`);
  return retryAt + Math.floor(part * Math.min(Math.max(retryAfter, 0) * fraction, msOf(most)));
}
