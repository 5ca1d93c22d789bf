/** Counts hits for express-rate-limit and hono-rate-limiter. */
import { MAX_COUNT } from "../../engine/generated/bounds.ts";
import type { Limiter } from "../../limiter/limiter.ts";
import type { Answer } from "../../limiter/options.ts";
import { MINUTE } from "../../limit/duration.ts";
import { InputError } from "../../limit/errors.ts";
import type { MemoryStore } from "../../stores/memory.ts";
import type { Store } from "../../stores/contract.ts";
import { follow, type MaybePromise } from "../../limit/maybe-promise.ts";
import { hitKey, wholePeriod, window } from "./algebra.ts";
import { type CheckedHits, checkHits, hitLimiter, type HitOptions } from "./options.ts";

/** Hits of a key, and when its window ends. */
export interface Hits {
  totalHits: number;
  resetTime: Date;
}

/** Hits in windows of `period` ms, which begin with a key's first hit. In a window of 0 ms, each hit is the first. */
export class HitCounter<S extends Store> {
  readonly name: string;
  readonly checked: CheckedHits<S>;
  #limiter: Limiter<string, S>;

  constructor(options: HitOptions<S>, peer: string, limits?: (name: string) => readonly string[]) {
    this.checked = checkHits(options, peer, limits);
    this.name = this.checked.name;
    this.#limiter = hitLimiter(this.checked);
  }

  /** Counts one hit, also beyond the other package's limit. */
  hit(key: string, period: number): MaybePromise<Hits> {
    if (period === 0) return this.#pending({ totalHits: 1, resetTime: new Date(Date.now()) });
    return follow(this.#limiter.charge(this.name, target(key, period)), (decision) => {
      // These packages have their own way to go on without a store (`passOnStoreError`, `skipOnError`).
      if (decision.degraded === true) throw decision.cause;
      return hits(decision, period);
    });
  }

  /** Takes one hit back from the current window. */
  back(key: string, period: number): MaybePromise<void> {
    if (period === 0) return this.#pending(undefined);
    return follow(this.#limiter.give(this.name, target(key, period)), () => undefined);
  }

  /** The current window's hits; `undefined` if it has none. */
  read(key: string, period: number): MaybePromise<Hits | undefined> {
    if (period === 0) return this.#pending(undefined);
    const value = this.#limiter.getValue(this.name, target(key, period));
    return follow(value, (state) => (state.value >= MAX_COUNT ? undefined : hits(state, period)));
  }

  forget(key: string, period: number): MaybePromise<void> {
    if (period === 0) return this.#pending(undefined);
    return this.#limiter.reset(this.name, target(key, period));
  }

  /** Forgets every key. Only if the counts are in this drop-in's own memory. */
  forgetAll(): void {
    this.#limiter = hitLimiter(this.checked);
  }

  #pending<T>(value: T): MaybePromise<T> {
    return this.#limiter.store.sync ? value : Promise.resolve(value);
  }
}

const target = (key: string, period: number) => ({ key: hitKey(key, String(period)), config: window(period) });

const hits = ({ value, ts }: { value: number; ts: number }, period: number): Hits => ({
  totalHits: MAX_COUNT - value,
  resetTime: new Date(ts + period),
});

/** The store interface of express-rate-limit 8 and hono-rate-limiter. */
export interface HitStore<S extends Store> {
  /** Sets the window's length in ms. The limiter calls it once; another length on a second call throws an `InputError`. */
  init(options: { windowMs: number }): void;
  /** The key's hits; `undefined` if it has none in its current window. */
  get(key: string): Answer<S, Hits | undefined>;
  /** Counts a hit. */
  increment(key: string): Answer<S, Hits>;
  /** Takes back a hit. */
  decrement(key: string): Answer<S, void>;
  /** Forgets the key's hits. */
  resetKey(key: string): Answer<S, void>;
  /** Whether another store object could count the same keys. */
  readonly localKeys: boolean;
  /** What the keys of its counts begin with. */
  readonly prefix: string;
  /** Frees the counts of a drop-in store that has its own memory. Otherwise does nothing: the `store` is the caller's to end. */
  shutdown(): void;
}

/** A drop-in store with its own memory, which can also forget all keys. */
export interface LocalHitStore extends HitStore<MemoryStore> {
  /** Resets every key. A store on a server has no such method: it has no list of its keys. */
  resetAll(): void;
}

function hitStore<S extends Store>(options: HitOptions<S>, peer: string): HitStore<S> {
  const counter = new HitCounter(options, peer);
  const local = options.store === undefined;
  let given: number | undefined;
  // The window of the other packages if none is set.
  let period = MINUTE;
  const resetAll = (): void => counter.forgetAll();
  return {
    ...(local && { resetAll }),
    shutdown: () => {
      if (local) resetAll();
    },
    localKeys: local,
    prefix: `${counter.name}:`,
    init: (settings) => {
      const windowMs: unknown = (settings as { windowMs?: unknown } | null | undefined)?.windowMs ?? MINUTE;
      const whole = wholePeriod("windowMs", windowMs);
      if (given !== undefined && period !== whole) {
        const rule = `${given}, as the first limiter of this store has it: each limiter needs a store of its own`;
        throw new InputError("windowMs", rule, windowMs);
      }
      given = windowMs as number;
      period = whole;
    },
    get: (key) => counter.read(key, period) as Answer<S, Hits | undefined>,
    increment: (key) => counter.hit(key, period) as Answer<S, Hits>,
    decrement: (key) => counter.back(key, period) as Answer<S, void>,
    resetKey: (key) => counter.forget(key, period) as Answer<S, void>,
  };
}

/**
 * A store for express-rate-limit 8, with every option of that package. It counts hits, denied ones too, in windows of
 * `windowMs`, which begin with a key's first hit.
 *
 * Counts belong to `name`, the window's length and the key. Servers share them by the same name on the same backing
 * store; each limit needs its own name.
 *
 * ```ts
 * const store = expressRateLimitStore({ store: redis(client), name: "api" });
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store }));
 * ```
 *
 * Throws an `InputError` if `name` is missing while `store` is set, or if another drop-in store uses it on that `store`.
 */
export function expressRateLimitStore(options?: HitOptions<never>): LocalHitStore;
export function expressRateLimitStore<S extends Store>(options?: HitOptions<S>): HitStore<S>;
export function expressRateLimitStore<S extends Store>(options: HitOptions<S> = {}): HitStore<S> {
  return hitStore(options, "express-rate-limit");
}

/**
 * A store for hono-rate-limiter, by the same rules as {@link expressRateLimitStore}.
 *
 * ```ts
 * const store = honoRateLimiterStore({ store: redis(client), name: "api" });
 * app.use(rateLimiter({ windowMs: 60_000, limit: 100, keyGenerator, store }));
 * ```
 */
export function honoRateLimiterStore(options?: HitOptions<never>): LocalHitStore;
export function honoRateLimiterStore<S extends Store>(options?: HitOptions<S>): HitStore<S>;
export function honoRateLimiterStore<S extends Store>(options: HitOptions<S> = {}): HitStore<S> {
  return hitStore(options, "hono-rate-limiter");
}
