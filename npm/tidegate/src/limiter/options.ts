/** The options of a limiter and of its calls, and their checks, which run before the store is called. */
import { EXPECTS, KEY_EXPECTS, MAX_COUNT, MAX_KEY_BYTES, MAX_NOW_MS, VERSION } from "../engine/generated/bounds.ts";
import { checkLength, utf8Length } from "../engine/utf8.ts";
import { type Config, checkOnStoreError, checkTimeout, numberError } from "../limit/config.ts";
import {
  ANY,
  type Check,
  checkFields,
  checkObject,
  checkTable,
  fieldTable,
  functionThat,
  type Table,
  unknownField,
} from "../limit/checks.ts";
import { isPromise, PLAIN, tagOf } from "../limit/realms.ts";
import type { State } from "../limit/decision.ts";
import { type Duration, inMs } from "../limit/duration.ts";
import { InputError, show, showObject } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import { meant } from "../limit/nearest.ts";
import type { Call, Op, Store, SyncStore } from "../stores/contract.ts";
import { MemoryStore } from "../stores/memory.ts";
import { checkLog } from "./outages.ts";
import type { Resilience, Settings } from "./resilience.ts";

/**
 * A call's result: the value itself from a synchronous store, a promise from any other. `await` works on both. A mistake in
 * the call throws an `InputError` synchronously, before there is a promise.
 */
export type Answer<S extends Store, T> = S extends SyncStore ? T : Promise<T>;

/** Settings of {@link defineLimits}. */
export interface LimiterOptions<S extends Store = Store> extends Resilience {
  /** Where state lives; default {@link memory}. */
  store?: S | undefined;
  /** The clock, epoch ms. Default: the store's own; `Date.now` in memory. Pass one in tests. */
  now?: (() => number) | undefined;
}

/** Makes the compiler reject a key that may be `undefined`. */
interface NoKey {
  readonly "leave `key` out for one limit that all share": never;
}

/** Whose limit it is. The compiler reports mistakes against the last member, so its key is a plain string. */
export type Keyed =
  | {
      /** Omitted: one limit that all callers share. */
      key?: string & NoKey;
    }
  | {
      /** The limit's key, such as a user's id: 1 to 1024 bytes in UTF-8. */
      key: string;
    };

/** The option of a key that may be absent. */
export const keyed = (key: string | undefined): Keyed => (key === undefined ? {} : { key });

/** Options of every call. */
export type CallOptions = Keyed & CallSettings;

interface CallSettings {
  /** Tokens: 0 to 2^40, fractions included; default 1. */
  count?: number | undefined;
  /** A config for this call, instead of the defined one. */
  config?: Config | undefined;
}

/** Options of {@link Limiter.limit} and {@link Limiter.check}. */
export type LimitOptions = CallOptions & LimitSettings;

interface LimitSettings {
  /** Take tokens that are not available yet, up to the limit's `maxReserved`: granted for `retryAt`. */
  reserve?: boolean | undefined;
  /** Throw a {@link RateLimitError} for a denial. */
  throws?: boolean | undefined;
}

/** Options of {@link Limiter.reset} and {@link Limiter.getValue}. */
export type KeyOptions = Keyed & Pick<CallSettings, "config">;

/** Options of {@link Limiter.block}. */
export type BlockOptions = KeyOptions & {
  /** How long: integer ms from 1 to 2^40 (34 years), or a string with a unit, such as `"15m"`. */
  for: Duration;
};

/** One limit of {@link Limiter.limitAll}. */
export type LimitRequest<N extends string> = CallOptions & Pick<LimitSettings, "reserve"> & { name: N };

/** One limit of any name, which its `config` defines. */
export type InlineRequest = LimitRequest<string> & { config: Config };

/** The limit's state, and the config that projects it. */
export interface Value extends State {
  /** Complete, with the key's `start`: pass it to `project`. */
  config: Config;
}

/** The settings of a limiter, checked, with defaults. */
export interface LimiterSettings<S extends Store> extends Settings {
  readonly store: S;
  readonly now: LimiterOptions<S>["now"];
}

/** The settings of a limiter, checked, with a store in memory if none is given. */
export function checkLimiterOptions<S extends Store>(options: LimiterOptions<S>): LimiterSettings<S> {
  checkTable("defineLimits", options, LIMITER, "an object, such as { store }");
  const { store = new MemoryStore() as Store as S, now } = options;
  const onStoreError = checkOnStoreError(options.onStoreError) ?? "deny";
  const timeout = checkTimeout(options.timeout) ?? 250;
  const log = checkLog(options.log);
  checkVersion(store);
  return { store, now, onStoreError, timeout, log };
}

/** Throws if another version of the package made the store: the two would misread each other's numbers. */
function checkVersion(store: object): void {
  const { tidegate = VERSION } = store as { readonly tidegate?: string };
  if (tidegate === VERSION) return;
  const rule = `made by the tidegate that uses it, which is ${VERSION}: install one version`;
  throw new InputError("store", rule, store, `a store made by tidegate ${tidegate}`);
}

export const NONE: LimitOptions = Object.freeze({});
export const STORE: Check = {
  expects: "a store, such as memory() or redis(client)",
  accepts: (store) => typeof (store as Partial<Store> | null)?.decide === "function",
};
export const LIMITER: Readonly<Record<keyof LimiterOptions<Store>, Check>> = {
  store: STORE,
  now: functionThat("a function that returns ms"),
  onStoreError: ANY,
  timeout: ANY,
  log: ANY,
};
const LIMIT = fieldTable("key", "count", "reserve", "throws", "config");
const CALL = fieldTable("key", "count", "config");
export const MANY: Table = fieldTable("count");
export const TARGET: Table = fieldTable("key", "config");
export const BLOCK: Table = fieldTable("key", "for", "config");
const REQUEST = fieldTable("name", "key", "count", "reserve", "config");
/** The most limits that one atomic call may name. */
export const MAX_REQUESTS = 100;
/** The most keys of one `limitMany`. */
const MAX_KEYS_AT_ONCE = 100_000;
/** The most names that a sentence lists. */
const MAX_LISTED = 20;

export const OPTIONS = "an object, such as { key, count }";

export function checkCall(op: Op, options: unknown): void {
  checkObject("options", options, OPTIONS);
  const known = op === "take" || op === "check" ? LIMIT : CALL;
  // `checkFields` with the usual fields first, which halves its cost (2 % of a decision).
  for (const field in options) {
    if (field !== "key" && field !== "count" && !Object.hasOwn(known, field))
      unknownField(field, options, known, op === "take" ? "limit" : op);
  }
}

/** Returns the key of a call's options; `undefined` if they have none. */
export function checkKey(options: { readonly key?: unknown }): string | undefined {
  // Nothing to look at: calls without options are hot too.
  if (options === NONE) return undefined;
  const { key } = options;
  if (key === undefined && !("key" in options)) {
    // A promise that was not awaited, an array, a Request or a Map has no `key`: all callers would share one limit.
    const tag = tagOf(options);
    if (tag !== PLAIN || isPromise(options)) {
      const shown = showObject(options);
      throw new InputError("options", OPTIONS, options, shown === "an object" ? tag : shown);
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
  checkFields(request, REQUEST, "a request");
}

export function checkCount(count: unknown): number {
  if (typeof count === "number" && count >= 0 && count <= MAX_COUNT) return count;
  throw numberError("count", count);
}

/** The ms of a block. */
export function checkFor(length: unknown): number {
  const ms = inMs(length);
  if (Number.isInteger(ms) && (ms as number) >= 1 && (ms as number) <= MAX_COUNT) return ms as number;
  throw new InputError("for", `${EXPECTS.for}, or a string such as "15m"`, length);
}

/** Calls on distinct limits and keys, and for each request the index of its call. */
interface Distinct {
  readonly calls: readonly Call[];
  readonly indexes: readonly number[];
}

/**
 * Requests on one limit and key become one call for their sum, with `reserve` if each of them has it. Throws if the
 * sum is more than a count may be, or the requests have different configs.
 */
export function distinct(requests: readonly Call[]): Distinct {
  const calls: Call[] = [];
  const indexes = requests.map((request) => {
    const { limit, key, count, reserve } = request;
    // At most 100 requests: a search is cheaper than a map of strings.
    const index = calls.findIndex((call) => call.key === key && call.limit.name === limit.name);
    const before = calls[index];
    if (before === undefined) return calls.push(request) - 1;
    if (!isSame(before.limit, limit)) {
      throw new InputError(
        "config",
        `the same in all requests on ${JSON.stringify(limit.identity(key))}`,
        limit.policy,
      );
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

/** A lease needs the limit's whole state, which no shard has. */
export function refuseShards({ name, policy: { shards } }: Limit): void {
  if (shards === 1) return;
  const rule = `1 in the limit ${JSON.stringify(name)}, whose store leases: leases spread a hot key by themselves`;
  throw new InputError("shards", rule, shards);
}

/** The error for a name that is none of those defined. */
export function unknownName(name: unknown, defined: readonly string[], field = "name"): InputError {
  const listed = defined.slice(0, MAX_LISTED).map(show);
  if (defined.length > MAX_LISTED) listed.push(`and ${defined.length - MAX_LISTED} more`);
  const rule = `one of the limits defined: ${listed.join(", ") || "none is"}`;
  return new InputError(field, rule, name, show(name) + meant(name, defined, '"'));
}

/** A field of an observed limiter: itself, and the limiter that it observes. A wrapper may inherit this field. */
export const OBSERVED: unique symbol = /* @__PURE__ */ Symbol.for("tidegate.observed");

/**
 * The limiter behind an observed one, for calls that the application did not make; any other limiter is returned as it
 * is.
 */
export function unobserved<L extends object>(limiter: L): L {
  const { [OBSERVED]: found } = limiter as { readonly [OBSERVED]?: { readonly by: unknown; readonly limiter: L } };
  return found?.by === limiter ? found.limiter : limiter;
}

/** Throws unless it has these methods of a limiter. */
export function checkLimiter(limiter: unknown, ...methods: readonly ("limit" | "limitAll" | "give")[]): void {
  const found = Object(limiter) as Record<string, unknown>;
  if (methods.every((method) => typeof found[method] === "function")) return;
  throw notALimiter(limiter);
}

export const notALimiter = (value: unknown, got?: string): InputError =>
  new InputError("limiter", "what defineLimits returns", value, got);

/** Throws unless it is a name and, if the limiter lists its names, one of them. */
export function checkDefined(name: unknown, defined: readonly string[] | undefined): void {
  if (typeof name !== "string") throw new InputError("name", "the name of a limit", name);
  if (defined?.includes(name) === false) throw unknownName(name, defined);
}
