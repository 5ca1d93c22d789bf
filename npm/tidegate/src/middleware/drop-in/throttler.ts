/** The storage for @nestjs/throttler. */
import type { Decision } from "../../limit/decision.ts";
import { InputError } from "../../limit/errors.ts";
import type { Store } from "../../stores/contract.ts";
import { BLOCK, hitKey, wholePeriod, window } from "./algebra.ts";
import { checkHits, hitLimiter, type HitOptions } from "./options.ts";

/** What a storage of @nestjs/throttler returns for a request; times are in whole seconds. */
export interface ThrottlerRecord {
  totalHits: number;
  timeToExpire: number;
  isBlocked: boolean;
  timeToBlockExpire: number;
}

/** The storage interface of @nestjs/throttler: times in ms. */
export interface ThrottlerStorage {
  increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord>;
}

const LIMIT = "a number of hits, which the guard passes since version 6 of @nestjs/throttler: update that package";

const seconds = (ms: number): number => Math.max(Math.ceil(ms / 1000), 0);

/**
 * A storage for @nestjs/throttler 6, for one server or many.
 *
 * A throttler's hits are counted in windows of `ttl`, which begin with a key's first hit. The first denied request begins
 * a block of `blockDuration`; when it ends, the hits start again at none. Differences: all hits of a window end together,
 * if that package forgets each hit after its own `ttl`; and a denied request is reported as one hit over the limit.
 *
 * Counts belong to `name`, the throttler's name, `ttl`, and the key, which the guard makes of controller, handler and
 * client. Servers share them by the same name on the same backing store.
 *
 * ```ts
 * const storage = throttlerStorage({ store: redis(client), name: "api" });
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage });
 * ```
 *
 * Throws an `InputError` if `name` is missing while `store` is set, or if another drop-in store uses it on that `store`.
 */
export function throttlerStorage<S extends Store>(options: HitOptions<S> = {}): ThrottlerStorage {
  const checked = checkHits(options, "throttler", (name) => [`${name}.hits`, `${name}.block`]);
  const { name } = checked;
  const limiter = hitLimiter(checked);
  return {
    async increment(key, ttl, limit, blockDuration, throttlerName) {
      if (typeof limit !== "number") throw new InputError("limit", LIMIT, limit);
      const period = wholePeriod("ttl", ttl);
      const blockFor = wholePeriod("blockDuration", blockDuration);
      if (period === 0 && limit >= 1) return { totalHits: 1, timeToExpire: 0, isBlocked: false, timeToBlockExpire: 0 };
      const counted = hitKey(key, throttlerName, String(period));
      const hit = { name: `${name}.hits`, key: counted, reserve: true, config: window(Math.max(period, 1), limit) };
      const block = { name: `${name}.block`, key: counted, count: 0, config: BLOCK };
      const all = await limiter.limitAll(blockFor > 0 ? [hit, block] : [hit]);
      if (all.degraded === true) throw all.cause;
      const [hits, blocking] = all.decisions as [Decision, Decision | undefined];
      let wait = hits.ts + period - hits.now;
      const timeToExpire = seconds(wait);
      if (all.ok) return { totalHits: Math.max(-hits.value, 0), timeToExpire, isBlocked: false, timeToBlockExpire: 0 };
      if (blocking !== undefined) {
        wait = -blocking.value;
        if (blocking.ok) {
          // Of concurrent denials only one begins the block; the others report when it ends.
          const config = { ...BLOCK, maxReserved: blockFor };
          const begun = await limiter.limit(block.name, { key: counted, count: blockFor, reserve: true, config });
          wait = -begun.value;
          if (begun.ok) await limiter.reset(hit.name, { key: counted, config: hit.config });
        }
      }
      return { totalHits: limit + 1, timeToExpire, isBlocked: true, timeToBlockExpire: Math.max(seconds(wait), 1) };
    },
  };
}
