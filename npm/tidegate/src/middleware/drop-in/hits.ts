import { Limiter } from "../../limiter/limiter.ts";
import { InputError } from "../../limit/errors.ts";
import type { Decision } from "../../limit/decision.ts";
import { tupleKey } from "../../http/key.ts";
import type { Store, SyncStore } from "../../stores/contract.ts";
import { follow, type Pending } from "../pending.ts";
import { checkHits, type HitOptions } from "./options.ts";

/** Hits of a key, and when its window ends. */
export interface Hits {
  totalHits: number;
  resetTime: Date;
}

type In<S extends Store, T> = S extends SyncStore ? T : Promise<T>;

/** More hits than any window sees: the other package compares with its own limit, so that hits beyond it count too. */
const MOST = 2 ** 40;

/**
 * Hits in windows of `period` ms, on the algebra: a fixed window of 2^40 tokens, where each hit is a `charge` of one. The
 * period is a part of every key, so that no state is read under another window. The grid of windows is the key's own, so
 * the first window of a key may be shorter than the others.
 */
export class HitCounter<S extends Store> {
  readonly #limiter: Limiter<string, S>;
  readonly #name: string;

  constructor(options: HitOptions<S>, otherwise: string) {
    const { name, settings } = checkHits(options, otherwise);
    this.#name = name;
    this.#limiter = new Limiter<string, S>({}, settings);
  }

  get name(): string {
    return this.#name;
  }

  #call(key: string, period: number): { key: string; config: { kind: "fixed window"; rate: number; period: number } } {
    return { key: hitKey(key, String(period)), config: { kind: "fixed window", rate: MOST, period } };
  }

  /** Counts one hit. */
  hit(key: string, period: number): Pending<Hits> {
    return follow(this.#limiter.charge(this.#name, this.#call(key, period)) as Pending<Decision>, (decision) => {
      // These packages have a way of their own to go on without a store (`passOnStoreError`, `skipOnError`).
      if (decision.degraded === true) throw decision.cause;
      return hits(decision, period);
    });
  }

  /** Takes one hit back, of the window that is open now. */
  back(key: string, period: number): Pending<void> {
    return follow(this.#limiter.give(this.#name, this.#call(key, period)) as Pending<Decision>, () => undefined);
  }

  /** How many there are; `undefined` where there are none. */
  read(key: string, period: number): Pending<Hits | undefined> {
    const value = this.#limiter.getValue(this.#name, this.#call(key, period)) as Pending<{ value: number; ts: number }>;
    return follow(value, (state) => (state.value >= MOST ? undefined : hits(state, period)));
  }

  forget(key: string, period: number): Pending<void> {
    return this.#limiter.reset(this.#name, this.#call(key, period)) as Pending<void>;
  }
}

/** The key of a count: the parts of its identity, then the other package's key. */
export function hitKey(key: string, ...identity: readonly [string, ...string[]]): string {
  if (typeof key !== "string") throw new InputError("key", "a string", key);
  return tupleKey(...identity, key);
}

const hits = ({ value, ts }: { value: number; ts: number }, period: number): Hits => ({
  totalHits: MOST - value,
  resetTime: new Date(ts + period),
});

/** The store interface of express-rate-limit 8 and hono-rate-limiter. */
export interface HitStore<S extends Store> {
  /** Sets the window's length in ms. The limiter calls it once; another length on a second call throws an `InputError`. */
  init(options: { windowMs: number }): void;
  get(key: string): In<S, Hits | undefined>;
  increment(key: string): In<S, Hits>;
  decrement(key: string): In<S, void>;
  resetKey(key: string): In<S, void>;
  /** Whether another store object could count the same keys. */
  readonly localKeys: boolean;
  readonly prefix: string;
}

function hitStore<S extends Store>(options: HitOptions<S>, otherwise: string): HitStore<S> {
  const counter = new HitCounter(options, otherwise);
  let period: number | undefined;
  const opened = (): number => {
    if (period === undefined) throw new InputError("windowMs", "set through init before a hit is counted", period);
    return period;
  };
  return {
    localKeys: options.store === undefined,
    prefix: `${counter.name}:`,
    init: (settings) => {
      const windowMs: unknown = (settings as { windowMs?: unknown } | null | undefined)?.windowMs;
      if (typeof windowMs !== "number") throw new InputError("windowMs", "a whole number of ms", windowMs);
      if (period !== undefined && period !== windowMs) {
        const rule = `${period}, as the first limiter of this store has it: each limiter needs a store of its own`;
        throw new InputError("windowMs", rule, windowMs);
      }
      period = windowMs;
    },
    get: (key) => counter.read(key, opened()) as In<S, Hits | undefined>,
    increment: (key) => counter.hit(key, opened()) as In<S, Hits>,
    decrement: (key) => counter.back(key, opened()) as In<S, void>,
    resetKey: (key) => counter.forget(key, opened()) as In<S, void>,
  };
}

/**
 * A store for express-rate-limit 8, with every option of that package. It counts hits, denied ones too, in windows of
 * `windowMs`. One difference: a key's windows lie on a grid of their own instead of beginning with its first hit, so that the
 * first may be shorter; no window grants more.
 *
 * Counts belong to `name`, the window's length and the key. Servers share them by the same name on the same backing
 * store; each limit needs a name of its own.
 *
 * ```ts
 * const store = expressRateLimitStore({ store: redis(client), name: "api" });
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store }));
 * ```
 *
 * Throws an `InputError` where a `store` comes without a `name`, or with a name that it has already.
 */
export const expressRateLimitStore = <S extends Store>(options: HitOptions<S> = {}): HitStore<S> =>
  hitStore(options, "express-rate-limit");

/**
 * A store for hono-rate-limiter, by the same rules as {@link expressRateLimitStore}.
 *
 * ```ts
 * const store = honoRateLimiterStore({ store: redis(client), name: "api" });
 * app.use(rateLimiter({ windowMs: 60_000, limit: 100, keyGenerator, store }));
 * ```
 */
export const honoRateLimiterStore = <S extends Store>(options: HitOptions<S> = {}): HitStore<S> =>
  hitStore(options, "hono-rate-limiter");
