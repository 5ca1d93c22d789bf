import type { Config } from "./config.ts";
import type { State } from "./decision.ts";
import type { Resilience } from "./resilience.ts";
import type { Store, SyncStore } from "./store.ts";

/** A store's answer: at once from a synchronous store, a promise from any other. `await` works on both. */
export type Answer<S extends Store, T> = S extends SyncStore ? T : Promise<T>;

/** Settings of {@link defineLimits}. */
export interface LimiterOptions<S extends Store> extends Resilience {
  /** Where state lives; default {@link memory}. */
  store?: S | undefined;
  /** The clock, epoch ms. Default: the store's own; `Date.now` in memory. Give one in tests. */
  now?: (() => number) | undefined;
}

/** What every call takes. */
export interface CallOptions {
  /** Whose limit: any string of at most 1024 bytes in UTF-8. Without one there is one limit for all. */
  key?: string | undefined;
  /** Tokens: 0 to 2^40, fractions included; default 1. */
  count?: number | undefined;
  /** A limit defined at the call, in place of the one of this name. */
  config?: Config | undefined;
}

/** What {@link Limiter.limit} and {@link Limiter.check} take. */
export interface LimitOptions extends CallOptions {
  /** Take tokens that are not there yet: granted for `retryAt`, up to the limit's `maxReserved`. */
  reserve?: boolean | undefined;
  /** Throw a {@link RateLimitError} where it is denied. */
  throws?: boolean | undefined;
}

/** One limit of {@link Limiter.limitAll}. */
export interface LimitRequest<N extends string> extends Omit<LimitOptions, "throws" | "config"> {
  name: N;
  config?: Config | undefined;
}

/** The limit's two numbers and the config that projects them. */
export interface Value extends State {
  /** Complete, with the key's `start`: pass it to `project`. */
  config: Config;
}
