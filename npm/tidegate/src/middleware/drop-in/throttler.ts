import type { Config } from "../../config.ts";
import type { AllDecision, Decision } from "../../decision.ts";
import { tupleKey } from "../../http/key.ts";
import { Limiter } from "../../limiter.ts";
import type { Store } from "../../store.ts";
import type { HitOptions } from "./hits.ts";

/** What @nestjs/throttler is told of a request; its times are in whole seconds. */
export interface ThrottlerRecord {
  totalHits: number;
  timeToExpire: number;
  isBlocked: boolean;
  timeToBlockExpire: number;
}

/** What @nestjs/throttler asks of a storage: times in ms. */
export interface ThrottlerStorage {
  increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord>;
}

const seconds = (ms: number): number => Math.max(Math.ceil(ms / 1000), 0);

/**
 * A storage for @nestjs/throttler, for one server or many.
 *
 * A throttler's hits are a fixed window of `limit` tokens per `ttl`. A block is a bucket without capacity that may owe one
 * token, which takes `blockDuration` to come: whoever is denied first takes it, and until it has come nothing is counted.
 * Both are asked in one step, all or nothing, so a denied flood writes nothing. Differences: windows lie on a grid of the
 * key's own, where that package forgets each hit after its own `ttl`; a denied request is reported as one hit over the limit;
 * and when a block ends, the hits are those of the window that is open then.
 *
 * ```ts
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage: throttlerStorage({ store: redis(client) }) });
 * ```
 */
export function throttlerStorage<S extends Store>(options: HitOptions<S> = {}): ThrottlerStorage {
  const { store, name = "throttler" } = options;
  const limiter = new Limiter<string, S>({}, store === undefined ? {} : { store });
  return {
    async increment(key, ttl, limit, blockDuration, throttlerName) {
      const whose = tupleKey(throttlerName, key);
      const window: Config = { kind: "fixed window", rate: Math.max(limit, 1), period: ttl, capacity: limit };
      const hit = { name: `${name}.hits`, key: whose, config: window };
      const period = Math.max(blockDuration, 1);
      const block: Config = { kind: "token bucket", rate: 1, period, capacity: 0, maxReserved: 1 };
      const blocked = { name: `${name}.block`, key: whose, config: block };
      const requests = blockDuration > 0 ? [hit, { ...blocked, count: 0 }] : [hit];
      const all = (await limiter.limitAll(requests)) as AllDecision;
      if (all.degraded === true) throw all.cause;
      const [hits, blocking] = all.decisions as [Decision, Decision | undefined];
      const left = Math.max(hits.value, 0);
      const timeToExpire = seconds(hits.ts + ttl - hits.now);
      if (all.ok) return { totalHits: limit - left, timeToExpire, isBlocked: false, timeToBlockExpire: 0 };
      let until = blocking?.ok === false ? blocking : undefined;
      if (until === undefined && blocking !== undefined) {
        // Of those denied at once only one takes the token; the others are told when it comes.
        until = await limiter.limit(blocked.name, { key: whose, config: block, reserve: true });
        if (!until.ok) until = await limiter.check(blocked.name, { key: whose, config: block, count: 0 });
      }
      const wait = until === undefined ? timeToExpire : seconds(until.retryAfter ?? 0);
      return { totalHits: limit + 1, timeToExpire, isBlocked: true, timeToBlockExpire: Math.max(wait, 1) };
    },
  };
}
