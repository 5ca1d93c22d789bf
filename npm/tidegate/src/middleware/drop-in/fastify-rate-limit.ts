/** The store for @fastify/rate-limit. */
import { checkObject } from "../../limit/checks.ts";
import { tupleKey } from "../../http/key.ts";
import type { Store } from "../../stores/contract.ts";
import { isPromise } from "../../limit/realms.ts";
import { follow, type MaybePromise } from "../../limit/maybe-promise.ts";
import { hitKey, wholePeriod } from "./algebra.ts";
import { HitCounter, type Hits } from "./hits.ts";
import type { HitOptions } from "./options.ts";
import { type Current, StretchedCounter, stretchedNames } from "./stretched.ts";

type Callback = (error: Error | null, result?: Current) => void;

/** The store interface of @fastify/rate-limit. Version 9 passes all four arguments too; its types have two. */
export interface FastifyHitStore {
  incr(key: string, callback: Callback, timeWindow?: number, max?: number): void;
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
 * A store for @fastify/rate-limit 9 to 11: a class, as that plugin requires. It counts hits, denied ones too, in windows of
 * `timeWindow`, which begin with a key's first hit. With `continueExceeding`, each hit over `max` denies the key for another
 * `timeWindow`; with `exponentialBackoff`, for twice as long as the hit before it. As in the plugin's Redis store, a
 * window with `exponentialBackoff` lasts as long as the response reports.
 *
 * Counts belong to `name`, the window's length, the key, and the limiter within the application: a route with a limit of
 * its own by method and URL; the plugin's global limit, `app.rateLimit(options)` and `app.createRateLimit(options)` by
 * their `max`, `timeWindow` and `groupId`. If several are equal in these, each has a number, in the order in which
 * the application makes them. So servers that run the same application share the counts of each limiter.
 *
 * ```ts
 * const store = fastifyRateLimitStore({ store: redis(client), name: "web" });
 * await app.register(rateLimit, { max: 100, timeWindow: "1 minute", store });
 * ```
 *
 * Throws an `InputError` if `name` is missing while `store` is set, or if another drop-in store uses it on that `store`.
 */
export function fastifyRateLimitStore<S extends Store>(
  options: HitOptions<S> = {},
): new (
  settings: object,
) => FastifyHitStore {
  const counter = new HitCounter(options, "fastify-rate-limit", (name) => [name, ...stretchedNames(name)]);
  let stretched: StretchedCounter<S> | undefined;
  const made = new Map<string, number>();
  return class FastifyRateLimitStore implements FastifyHitStore {
    readonly #identity: readonly [string, string];
    readonly #stretch: "continue" | "backoff" | undefined;
    readonly #window: unknown;

    constructor(settings: Settings) {
      checkObject("options", settings, "the settings of @fastify/rate-limit, which calls this itself");
      if (settings.continueExceeding === true) this.#stretch = "continue";
      else if (settings.exponentialBackoff === true) this.#stretch = "backoff";
      this.#window = settings.timeWindow;
      const described = describe(settings);
      const number = (made.get(described) ?? 0) + 1;
      made.set(described, number);
      this.#identity = [described, String(number)];
    }

    incr(key: string, callback: Callback, window = 0, most = 0): void {
      // Version 9 passes `max` and `ban` in these places; its window is a number in the settings.
      const old = typeof this.#window === "number" && (this.#window !== window || most < 0);
      const [timeWindow, max] = old ? [this.#window, window] : [window, most];
      answer(() => {
        const [counted, period, stretched] = this.#target(key, timeWindow);
        return stretched === undefined
          ? follow(counter.hit(counted, period), current)
          : stretched.hit(counted, period, max, this.#stretch === "backoff");
      }, callback);
    }

    read(key: string, callback: Callback, timeWindow: number, max = 0): void {
      answer(() => {
        const [counted, period, stretched] = this.#target(key, timeWindow);
        return stretched === undefined
          ? follow(counter.read(counted, period), current)
          : stretched.read(counted, period, max);
      }, callback);
    }

    child(settings: Settings): FastifyHitStore {
      return new FastifyRateLimitStore(settings);
    }

    #target(key: string, timeWindow: number): [key: string, period: number, StretchedCounter<S> | undefined] {
      const period = wholePeriod("timeWindow", timeWindow);
      const counted = hitKey(key, ...this.#identity);
      if (this.#stretch === undefined || period === 0) return [counted, period, undefined];
      stretched ??= new StretchedCounter(counter.checked);
      return [counted, period, stretched];
    }
  };
}

const current = (hits: Hits | undefined): Current => ({
  current: hits?.totalHits ?? 0,
  ttl: hits === undefined ? 0 : Math.max(hits.resetTime.getTime() - Date.now(), 0),
});

function answer(count: () => MaybePromise<Current>, callback: Callback): void {
  let found: MaybePromise<Current>;
  try {
    found = count();
  } catch (error) {
    callback(error as Error);
    return;
  }
  if (isPromise(found)) {
    found.then(
      (result) => callback(null, result),
      (error) => callback(error as Error),
    );
  } else callback(null, found);
}
