/** The checks of calls, which run before the store is called. */
import { EXPECTS, KEY_EXPECTS, MAX_COUNT, MAX_KEY_BYTES, MAX_NOW_MS } from "../engine/generated/bounds.ts";
import { checkLength, utf8Length } from "../engine/utf8.ts";
import { type Config, numberError } from "../limit/config.ts";
import { checkFields, checkFlag, checkObject, fieldTable, type Table, unknownField } from "../limit/checks.ts";
import { isPromise, PLAIN, tagOf } from "../limit/realms.ts";
import { inMs } from "../limit/duration.ts";
import { InputError, showObject } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import type { Call, Op } from "../stores/contract.ts";
import type { LimitOptions, LimitRequest } from "./options.ts";

export const NO_OPTIONS: LimitOptions = Object.freeze({});
const LIMIT_FIELDS = fieldTable("key", "count", "reserve", "throws", "config");
const CALL_FIELDS = fieldTable("key", "count", "config");
export const MANY_FIELDS: Table = fieldTable("count");
export const TARGET_FIELDS: Table = fieldTable("key", "config");
export const BLOCK_FIELDS: Table = fieldTable("key", "for", "config");
const REQUEST_FIELDS = fieldTable("name", "key", "count", "reserve", "config");
/** The most limits that one atomic call may name. */
export const MAX_REQUESTS = 100;
/** The most keys of one `limitMany`. */
const MAX_KEYS_AT_ONCE = 100_000;

export const EXPECTED = "an object, such as { key, count }";

export function checkCall(op: Op, options: unknown): void {
  checkObject("options", options, EXPECTED);
  const known = op === "take" || op === "check" ? LIMIT_FIELDS : CALL_FIELDS;
  // `checkFields` with the usual fields first, which halves its cost (2 % of a decision).
  for (const field in options) {
    if (field !== "key" && field !== "count" && !Object.hasOwn(known, field))
      unknownField(field, options, known, op === "take" ? "limit" : op);
  }
}

/** Returns the key of a call's options; `undefined` if they have none. */
export function checkKey(options: { readonly key?: unknown }): string | undefined {
  // Nothing to look at: calls without options are hot too.
  if (options === NO_OPTIONS) return undefined;
  const { key } = options;
  if (key === undefined && !("key" in options)) {
    // A promise that was not awaited, an array, a Request or a Map has no `key`: all callers would share one limit.
    if (tagOf(options) !== PLAIN || isPromise(options)) {
      throw new InputError("options", EXPECTED, options, showObject(options));
    }
    return key;
  }
  return checkText(key);
}

function checkText(key: unknown): string {
  if (typeof key !== "string" || key === "") {
    throw new InputError("key", `${KEY_EXPECTS}, and not empty; leave it out for one limit that all share`, key);
  }
  // A UTF-16 unit takes at most three bytes; only a key that may be too long is measured.
  if (key.length * 3 > MAX_KEY_BYTES) checkLength(key, utf8Length(key));
  return key;
}

export function checkKeys(keys: unknown): string[] {
  if (!Array.isArray(keys) || keys.length > MAX_KEYS_AT_ONCE) {
    const got = Array.isArray(keys) ? `${keys.length} keys` : undefined;
    throw new InputError("keys", `an array of at most ${MAX_KEYS_AT_ONCE} strings`, keys, got);
  }
  // Not `map`, which skips the holes of an array.
  return Array.from(keys as readonly unknown[], (key) => checkText(key));
}

export function checkRequests(requests: unknown): void {
  if (Array.isArray(requests) && requests.length > 0 && requests.length <= MAX_REQUESTS) return;
  const got = Array.isArray(requests) ? `${requests.length} requests` : undefined;
  throw new InputError("requests", `an array of 1 to ${MAX_REQUESTS} requests`, requests, got);
}

export function checkRequest(request: unknown): void {
  const rule = "an object, such as { name, key }";
  checkObject("request", request, rule);
  checkFields(request, REQUEST_FIELDS, "a request");
}

/** The tokens of a call; 1 if it has no count. */
export function checkCount(count: unknown = 1): number {
  if (typeof count === "number" && count >= 0 && count <= MAX_COUNT) return count;
  throw numberError("count", count);
}

/** The ms of a block. */
export function checkFor(length: unknown): number {
  const ms = inMs(length);
  if (Number.isInteger(ms) && (ms as number) >= 1 && (ms as number) <= MAX_COUNT) return ms as number;
  throw new InputError("for", `${EXPECTS.for}, or a string such as "15m"`, length);
}

/** The call of one of several requests, checked. */
export function callOf(
  op: "take" | "check",
  request: LimitRequest<string>,
  limitOf: (name: string, config: Config | undefined) => Limit,
): Call {
  checkRequest(request);
  const { name, count, reserve, config } = request;
  const limit = limitOf(name, config);
  checkFlag("reserve", reserve);
  return { op, limit, key: checkKey(request), count: checkCount(count), reserve: reserve === true };
}

/**
 * Calls on distinct limits and keys, and for each request the index of its call. Requests on one limit and key become one call
 * for their sum, with `reserve` if each of them has it. Throws if the sum is more than a count may be, or the requests have
 * different configs.
 */
export function distinct(requests: readonly Call[]): { calls: readonly Call[]; indexes: readonly number[] } {
  const calls: Call[] = [];
  const indexes = requests.map((request) => {
    const { limit, key, count, reserve } = request;
    // At most 100 requests: a search is cheaper than a map of strings.
    const index = calls.findIndex((call) => call.key === key && call.limit.name === limit.name);
    const before = calls[index];
    if (before === undefined) return calls.push(request) - 1;
    if (!isSame(before.limit, limit)) {
      const rule = `the same in all requests on ${JSON.stringify(limit.identity(key))}`;
      throw new InputError("config", rule, limit.policy);
    }
    calls[index] = { ...before, count: checkCount(before.count + count), reserve: before.reserve && reserve };
    return index;
  });
  return { calls, indexes };
}

const isSame = (a: Limit, b: Limit): boolean => a === b || JSON.stringify(a.policy) === JSON.stringify(b.policy);

export function checkNow(now: unknown): number {
  if (typeof now === "number" && now >= 0 && now <= MAX_NOW_MS) return Math.floor(now);
  throw numberError("now", now);
}
