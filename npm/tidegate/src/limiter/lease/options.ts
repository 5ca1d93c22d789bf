/** The option `lease` of a store, and its check. */
import { ANY, type Check, check, checkTable, durationFrom, integerFrom, msOf, numberFrom } from "../../limit/checks.ts";
import type { Duration } from "../../limit/duration.ts";
import { InputError } from "../../limit/errors.ts";

/** How a process leases tokens from a shared store, to spend them without a round trip. */
export interface LeaseOptions {
  /** How much of a key's demand to lease ahead: integer ms from 1 to 60,000, or a string such as `"1s"`; default 200. */
  ahead?: Duration | undefined;
  /** The most of the store's tokens to lease ahead in one step, as a fraction: above 0, up to 1; default 0.5. */
  share?: number | undefined;
  /**
   * When leased tokens are no longer spent: integer ms from `ahead` to 3,600,000, or a string such as `"10s"`; default 10
   * times `ahead`. A key without requests for half of it returns its tokens.
   */
  expiry?: Duration | undefined;
  /** Most keys with a lease: an integer from 1 to 1,000,000; default 10,000. */
  maxKeys?: number | undefined;
}

/** The settings with their defaults. */
export type LeaseSettings = { readonly [Field in keyof LeaseOptions]-?: number };

const OPTIONS: Readonly<Record<keyof LeaseOptions, Check>> = {
  ahead: durationFrom(1, 60_000, true),
  share: numberFrom("a fraction above 0 and up to 1", Number.MIN_VALUE, 1),
  // From `ahead`, which is checked last.
  expiry: ANY,
  maxKeys: integerFrom("an integer from 1 to 1000000", 1, 1_000_000),
};

/** The settings of a store's option `lease`: `true` is all defaults, absent or `false` is none. */
export function checkLease(lease: unknown): LeaseSettings | undefined {
  if (lease === undefined || lease === false) return undefined;
  if (lease !== true && (typeof lease !== "object" || lease === null)) {
    throw new InputError("lease", "true, false or an object with ahead, share, expiry and maxKeys", lease);
  }
  const options: LeaseOptions = lease === true ? {} : lease;
  checkTable("lease", options, OPTIONS);
  const { share = 0.5, maxKeys = 10_000 } = options;
  const ahead = msOf(options.ahead ?? 200);
  const { expiry = 10 * ahead } = options;
  return { ahead, share, expiry: msOf(check("expiry", expiry, durationFrom(ahead, 3_600_000, true))), maxKeys };
}
