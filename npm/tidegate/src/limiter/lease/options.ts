import { ANY, type Check, check, checkTable, integerFrom } from "../../limit/checks.ts";
import { InputError } from "../../limit/errors.ts";

/** How a process leases tokens from a shared store, to spend them without a round trip. */
export interface LeaseOptions {
  /** ms of a key's demand to lease ahead: an integer from 1 to 60,000; default 200. */
  ahead?: number | undefined;
  /** The most of the store's tokens to lease ahead in one step, as a fraction: above 0, up to 1; default 0.5. */
  share?: number | undefined;
  /**
   * ms after which leased tokens are no longer spent: an integer from `ahead` to 3,600,000; default 10 times `ahead`. A
   * key without requests for half of it returns its tokens.
   */
  expiry?: number | undefined;
  /** Most keys with a lease: an integer from 1 to 1,000,000; default 10,000. */
  maxKeys?: number | undefined;
}

/** The settings with their defaults. */
export type Lending = { readonly [Field in keyof LeaseOptions]-?: number };

const between = (min: number, max: number): Check => integerFrom(`a whole number from ${min} to ${max}`, min, max);
const OPTIONS: Readonly<Record<keyof LeaseOptions, Check>> = {
  ahead: between(1, 60_000),
  share: {
    expects: "a fraction above 0 and up to 1",
    accepts: (share) => typeof share === "number" && share > 0 && share <= 1,
  },
  // From `ahead`, which is checked last.
  expiry: ANY,
  maxKeys: between(1, 1_000_000),
};

/** The settings of a store's option `lease`: `true` is all defaults, absent or `false` is none. */
export function checkLease(lease: unknown): Lending | undefined {
  if (lease === undefined || lease === false) return undefined;
  if (lease !== true && (typeof lease !== "object" || lease === null)) {
    throw new InputError("lease", "true, false or an object with ahead, share, expiry and maxKeys", lease);
  }
  const options: LeaseOptions = lease === true ? {} : lease;
  checkTable("lease", options, OPTIONS);
  const { ahead = 200, share = 0.5, expiry = 10 * ahead, maxKeys = 10_000 } = options;
  return { ahead, share, expiry: check("expiry", expiry, between(ahead, 3_600_000)), maxKeys };
}
