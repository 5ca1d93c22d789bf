import { InputError } from "../../errors.ts";
import type { Store } from "../../store.ts";
import { isPending, type Pending } from "../pending.ts";
import { HitCounter, type HitOptions, type Hits } from "./hits.ts";

type Callback = (error: Error | null, result?: { current: number; ttl: number }) => void;

/** What @fastify/rate-limit asks of a store. */
export interface FastifyHitStore {
  incr(key: string, callback: Callback, timeWindow: number, max?: number): void;
  read(key: string, callback: Callback, timeWindow: number, max?: number): void;
  child(route: object): FastifyHitStore;
}

/** What the plugin tells a store, and a route's child of it. */
interface Settings {
  readonly continueExceeding?: boolean | undefined;
  readonly exponentialBackoff?: boolean | undefined;
  readonly routeInfo?: { readonly method?: string | string[]; readonly url?: string } | undefined;
}

/**
 * A store for @fastify/rate-limit: a class, as that plugin asks for. It counts hits, denied ones too, in windows of
 * `timeWindow`; a route with a limit of its own counts apart. Two differences: a key's windows lie on a grid of their own
 * instead of beginning with its first hit, so that the first may be shorter (no window grants more); and
 * `continueExceeding` and `exponentialBackoff`, which stretch windows, are refused with an `InputError`.
 *
 * ```ts
 * await app.register(rateLimit, { max: 100, timeWindow: "1 minute", store: fastifyRateLimitStore({ store: redis(client) }) });
 * ```
 */
export function fastifyRateLimitStore<S extends Store>(
  options: HitOptions<S> = {},
): new (
  settings: object,
) => FastifyHitStore {
  const counter = new HitCounter(options, "fastify-rate-limit");
  return class FastifyRateLimitStore implements FastifyHitStore {
    readonly #route: string;

    constructor(settings: Settings, route = "") {
      for (const field of ["continueExceeding", "exponentialBackoff"] as const) {
        if (settings[field] === true) throw new InputError(field, "off: a window ends when it ends", true);
      }
      this.#route = route;
    }

    incr(key: string, callback: Callback, timeWindow: number): void {
      answer(() => counter.hit(this.#route + key, timeWindow), callback);
    }

    read(key: string, callback: Callback, timeWindow: number): void {
      answer(() => counter.read(this.#route + key, timeWindow), callback);
    }

    child(settings: Settings): FastifyHitStore {
      const { method = "", url = "" } = settings.routeInfo ?? {};
      return new FastifyRateLimitStore(settings, `${[method].flat().join("+")} ${url} `);
    }
  };
}

function answer(count: () => Pending<Hits | undefined>, callback: Callback): void {
  const tell = (hits: Hits | undefined): void => {
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
  if (isPending(found)) found.then(tell, (error) => callback(error as Error));
  else tell(found);
}
