import { checkOptions } from "../../limiter/options.ts";
import { InputError } from "../../limit/errors.ts";
import { tupleKey } from "../../http/key.ts";
import type { Store } from "../../stores/contract.ts";
import { isPending, type Pending } from "../pending.ts";
import { HitCounter, hitKey, type Hits } from "./hits.ts";
import type { HitOptions } from "./options.ts";

type Callback = (error: Error | null, result?: { current: number; ttl: number }) => void;

/** The store interface of @fastify/rate-limit. */
export interface FastifyHitStore {
  incr(key: string, callback: Callback, timeWindow: number, max?: number): void;
  read(key: string, callback: Callback, timeWindow: number, max?: number): void;
  child(route: object): FastifyHitStore;
}

/** The settings that the plugin passes to a store, and to a child of it. */
interface Settings {
  readonly continueExceeding?: boolean | undefined;
  readonly exponentialBackoff?: boolean | undefined;
  readonly groupId?: string | undefined;
  readonly max?: unknown;
  readonly timeWindow?: unknown;
  /** The route's options; an empty object from `app.rateLimit(options)` and `app.createRateLimit(options)`. */
  readonly routeInfo?: { readonly method?: string | string[]; readonly url?: string } | undefined;
}

/** What a store of the plugin counts: a route by method and URL, anything else by its settings. */
function describe({ routeInfo, groupId, max, timeWindow }: Settings): string {
  const { method = [], url } = routeInfo ?? {};
  if (url !== undefined) return tupleKey("route", url, ...[method].flat());
  return tupleKey(
    "settings",
    ...[max, timeWindow, groupId].map((setting) => (typeof setting === "function" ? "a function" : String(setting))),
  );
}

/**
 * A store for @fastify/rate-limit: a class, as that plugin requires. It counts hits, denied ones too, in windows of
 * `timeWindow`. Two differences: a key's windows lie on a grid of their own instead of beginning with its first hit, so that
 * the first may be shorter (no window grants more); and `continueExceeding` and `exponentialBackoff`, which stretch
 * windows, are refused with an `InputError`.
 *
 * Counts belong to `name`, the window's length, the key, and the limiter within the application: a route with a limit of
 * its own by method and URL; the plugin's global limit, `app.rateLimit(options)` and `app.createRateLimit(options)` by
 * their `max`, `timeWindow` and `groupId`. Where several are equal in these, each has a number, in the order in which
 * the application makes them. So servers that run the same application share the counts of each limiter.
 *
 * ```ts
 * const store = fastifyRateLimitStore({ store: redis(client), name: "web" });
 * await app.register(rateLimit, { max: 100, timeWindow: "1 minute", store });
 * ```
 *
 * Throws an `InputError` where a `store` comes without a `name`, or with a name that it has already.
 */
export function fastifyRateLimitStore<S extends Store>(
  options: HitOptions<S> = {},
): new (
  settings: object,
) => FastifyHitStore {
  const counter = new HitCounter(options, "fastify-rate-limit");
  const made = new Map<string, number>();
  return class FastifyRateLimitStore implements FastifyHitStore {
    readonly #identity: readonly [string, string];

    constructor(settings: Settings) {
      checkOptions(settings, "the settings of @fastify/rate-limit, which calls this itself");
      for (const field of ["continueExceeding", "exponentialBackoff"] as const) {
        if (settings[field] === true) throw new InputError(field, "off: a window ends when it ends", true);
      }
      const described = describe(settings);
      const number = (made.get(described) ?? 0) + 1;
      made.set(described, number);
      this.#identity = [described, String(number)];
    }

    incr(key: string, callback: Callback, timeWindow: number): void {
      answer(() => counter.hit(hitKey(key, ...this.#identity), timeWindow), callback);
    }

    read(key: string, callback: Callback, timeWindow: number): void {
      answer(() => counter.read(hitKey(key, ...this.#identity), timeWindow), callback);
    }

    child(settings: Settings): FastifyHitStore {
      return new FastifyRateLimitStore(settings);
    }
  };
}

function answer(count: () => Pending<Hits | undefined>, callback: Callback): void {
  const report = (hits: Hits | undefined): void => {
    const ttl = hits === undefined ? 0 : Math.max(hits.resetTime.getTime() - Date.now(), 0);
    callback(null, { current: hits?.totalHits ?? 0, ttl });
  };
  let found: Pending<Hits | undefined>;
  try {
    found = count();
  } catch (error) {
    callback(error as Error);
    return;
  }
  if (isPending(found)) found.then(report, (error) => callback(error as Error));
  else report(found);
}
