import { checkFields, fieldTable } from "../../limit/config.ts";
import { InputError } from "../../limit/errors.ts";

/** How a shared store lends tokens to this process, to be spent without asking. */
export interface LeaseOptions {
  /** ms of a key's own demand to hold in hand: a whole number from 1 to 60,000; default 200. */
  ahead?: number | undefined;
  /** The most of what the store holds that is taken ahead at once: above 0, up to 1; default 0.5. */
  share?: number | undefined;
  /**
   * ms after which what is in hand is not spent any more: a whole number from `ahead` to 3,600,000; default 10 times
   * `ahead`. A key that was not asked for in half of it gives back what it has.
   */
  expiry?: number | undefined;
  /** Keys looked after at the most: a whole number from 1 to 1,000,000; default 10,000. */
  maxKeys?: number | undefined;
}

/** The settings with their defaults. */
export type Lending = { readonly [Field in keyof LeaseOptions]-?: number };

const OPTIONS = fieldTable("ahead", "share", "expiry", "maxKeys");

function whole(field: string, value: unknown, least: number, most: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new InputError(field, `a whole number from ${least} to ${most}`, value);
}

/** The settings of a store's option `lease`: `true` is all defaults, absent or `false` is none. */
export function checkLease(lease: unknown): Lending | undefined {
  if (lease === undefined || lease === false) return undefined;
  const given = lease === true ? {} : lease;
  if (typeof given !== "object" || given === null) {
    throw new InputError("lease", "true, false or an object with ahead, share, expiry and maxKeys", lease);
  }
  checkFields(given, OPTIONS, "lease");
  const { ahead = 200, share = 0.5, expiry, maxKeys = 10_000 } = given as LeaseOptions;
  whole("ahead", ahead, 1, 60_000);
  if (typeof share !== "number" || !(share > 0 && share <= 1)) {
    throw new InputError("share", "a fraction above 0 and up to 1", share);
  }
  return {
    ahead,
    share,
    expiry: whole("expiry", expiry ?? 10 * ahead, ahead, 3_600_000),
    maxKeys: whole("maxKeys", maxKeys, 1, 1_000_000),
  };
}
