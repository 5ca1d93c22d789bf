/** The options of a limiter, with their checks, and those of its calls, which calls.ts checks. */
import { VERSION } from "../engine/generated/bounds.ts";
import { type Config, checkOnStoreError, checkTimeout } from "../limit/config.ts";
import { ANY, type Check, checkTable, functionThat, hasMethods } from "../limit/checks.ts";
import type { State } from "../limit/decision.ts";
import type { Duration } from "../limit/duration.ts";
import { InputError } from "../limit/errors.ts";
import type { Store, SyncStore } from "../stores/contract.ts";
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
  checkTable("defineLimits", options, LIMITER_OPTIONS, "an object, such as { store }");
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

export const STORE: Check = {
  expects: "a store, such as memory() or redis(client)",
  accepts: (store) => hasMethods(store, "decide"),
};
export const LIMITER_OPTIONS: Readonly<Record<keyof LimiterOptions<Store>, Check>> = {
  store: STORE,
  now: functionThat("a function that returns ms"),
  onStoreError: ANY,
  timeout: ANY,
  log: ANY,
};
