/** What a limit is as a caller writes it, and the policy that it becomes once it is checked. */
import { EXPECTS, type Field } from "../engine/generated/bounds.ts";
import { KINDS, POLICY } from "../engine/generated/wire.ts";
import { check, durationFrom, msOf, notAField, checkObject } from "./checks.ts";
import { type Duration, inMs, LONGEST_TIMER } from "./duration.ts";
import { InputError, show } from "./errors.ts";
import { meant } from "./nearest.ts";

/**
 * What a limiter does when its store fails or is too slow: deny, allow, or decide with an in-memory limit at this fraction
 * (above 0, up to 1) of the rate, until the store answers again.
 */
export type OnStoreError = "deny" | "allow" | { readonly local: number };

/** Where the windows of a fixed window start. */
export type Start = number | "first request";

/** What both kinds of limit have. */
export interface CommonConfig {
  /** Tokens added per period: above 0, up to 2^40; fractions are fine. */
  rate: number;
  /** Length of the period: integer ms, 1 to 2^40; or a string with a unit, such as `"15m"`. */
  period: Duration;
  /** Most tokens that accumulate (the burst): 0 to 2^40; default `rate`. With 0 every grant is a reservation. */
  capacity?: number | undefined;
  /** Most tokens that may be owed by reservations: 0 to 2^40; default unlimited. */
  maxReserved?: number | undefined;
  /**
   * Rows that share the limit, to reduce contention on stores where rows are separate (Durable Objects, Redis Cluster, Deno
   * KV, Convex, Memcached): 1 to 65,536; default 1. Elsewhere the limit is one bucket, and `shards` has no effect.
   */
  shards?: number | undefined;
  /** What this limit does when the store fails; default the limiter's. */
  onStoreError?: OnStoreError | undefined;
  /** How long a call on this limit waits for the store, in ms or as a string with a unit; default the limiter's. */
  timeout?: Duration | undefined;
}

/** Tokens come back continuously, `rate` per `period`. */
export interface TokenBucketConfig extends CommonConfig {
  /** Tokens come back continuously. */
  kind: "token bucket";
}

/** `rate` tokens come together at the start of each window of `period` ms. */
export interface FixedWindowConfig extends CommonConfig {
  /** Tokens come back at the start of each window. */
  kind: "fixed window";
  /**
   * Where windows start. `"first request"`: at the key's first request; the next window opens at the first request after
   * the limit is full again. A time: the offset of a fixed grid from 0 UTC, integer ms or a string with a unit. Default: a
   * grid derived from name and key, so that the windows of different keys do not all open at the same time.
   */
  start?: Start | Duration | undefined;
}

/** A limit, as a caller writes it. */
export type Config = TokenBucketConfig | FixedWindowConfig;

/** A limit, checked, with its defaults filled in. Frozen. */
export interface Policy {
  /** The limit's name. */
  readonly name: string;
  readonly kind: Config["kind"];
  /** Tokens added per period. */
  readonly rate: number;
  /** ms. */
  readonly period: number;
  /** Most tokens that accumulate. */
  readonly capacity: number;
  /** Most tokens that may be owed; absent if there is no bound. */
  readonly maxReserved?: number;
  /** The offset of the window grid, ms; absent if it is derived from name and key. */
  readonly start?: Start;
  /** Rows that share the limit. */
  readonly shards: number;
}

export const FIRST_REQUEST = "first request";

/** A start as the engine reads it: infinite for the first request. */
export const startNumber = (start: Start): number => (start === FIRST_REQUEST ? Infinity : start);

const SETTINGS = ["onStoreError", "timeout"] as const;

type PolicyField = keyof typeof POLICY;

const numbersFor = (kind: Config["kind"]): PolicyField[] =>
  (Object.keys(POLICY) as PolicyField[]).filter((field) => kind === "fixed window" || field !== "start");

/** The error for a number field that is out of range or not a number. */
export const numberError = (field: Field, value: unknown): InputError => new InputError(field, EXPECTS[field], value);

export function checkOnStoreError(setting: unknown): OnStoreError | undefined {
  if (setting === undefined || setting === "deny" || setting === "allow") return setting;
  const local = typeof setting === "object" && setting !== null ? (setting as { local?: unknown }).local : undefined;
  if (typeof local === "number" && local > 0 && local <= 1) return { local };
  const rule = '"deny", "allow" or { local: a fraction above 0 and up to 1 }';
  throw new InputError("onStoreError", rule, local === undefined ? setting : local);
}

export function checkTimeout(timeout: unknown): number | undefined {
  if (timeout === undefined) return undefined;
  return msOf(check("timeout", timeout as Duration, durationFrom(1, LONGEST_TIMER)));
}

/** Reads a config's fields once, or names the one that is wrong. The engine checks the ranges. */
export function readConfig(
  name: string,
  config: unknown,
): { policy: Policy; onStoreError: OnStoreError | undefined; timeout: number | undefined } {
  checkObject("config", config, "an object with kind, rate and period");
  const read = { ...config } as Record<string, unknown>;
  const kind = KINDS.find((known) => known === read["kind"]);
  // Checked before the kind, so that a limit written for another library gets the name of our field.
  const legal: readonly string[] = ["kind", ...numbersFor(kind ?? "fixed window"), ...SETTINGS];
  for (const field of Object.keys(read)) {
    if (!legal.includes(field)) throw notAField(field, legal, `a ${kind ?? "limit"}`, read[field]);
  }
  if (kind === undefined) {
    const got = show(read["kind"]) + meant(read["kind"], KINDS, '"');
    throw new InputError("kind", '"token bucket" or "fixed window"', read["kind"], got);
  }
  const numbers: Partial<Record<PolicyField, Start>> = {};
  for (const field of numbersFor(kind)) {
    const isTime = field === "period" || field === "start";
    const value = isTime ? inMs(read[field]) : read[field];
    if (field === "start" && value === FIRST_REQUEST) numbers.start = FIRST_REQUEST;
    // The engine reports a rate or period that is absent.
    else if (value !== undefined) numbers[field] = checkNumber(field, value, isTime);
  }
  const { rate, capacity = rate, shards = 1 } = numbers;
  const policy = Object.freeze({ name, kind, ...numbers, capacity, shards } as Policy);
  return { policy, onStoreError: checkOnStoreError(read["onStoreError"]), timeout: checkTimeout(read["timeout"]) };
}

/** A number as the engine checks it, which takes NaN for an absent one, and an infinite start for the first request. */
function checkNumber(field: PolicyField, value: unknown, isTime: boolean): number {
  if (isTime && typeof value === "string") {
    throw new InputError(field, `${EXPECTS[field]}, or a string such as "15m"`, value);
  }
  if (typeof value !== "number" || Number.isNaN(value) || (field === "start" && !Number.isFinite(value))) {
    throw numberError(field, value);
  }
  return value + 0;
}

/** Writes a policy where the engine and the addon read it: NaN is an absent number. Another `start` is the key's. */
export function writePolicy(
  numbers: Float64Array,
  policy: Policy,
  start: number = startNumber(policy.start ?? Number.NaN),
): void {
  numbers[POLICY.rate] = policy.rate;
  numbers[POLICY.period] = policy.period;
  numbers[POLICY.capacity] = policy.capacity;
  numbers[POLICY.maxReserved] = policy.maxReserved ?? Number.NaN;
  numbers[POLICY.start] = start;
  numbers[POLICY.shards] = policy.shards;
}
