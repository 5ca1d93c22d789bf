import type { Config } from "../../limit/config.ts";
import type { AllDecision, Decision } from "../../limit/decision.ts";
import { Limiter } from "../../limiter/limiter.ts";
import type { Store } from "../../stores/contract.ts";
import { hitKey } from "./hits.ts";
import { checkHits, type HitOptions } from "./options.ts";

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

const seconds = (ms: number): number => Math.max(Math.ceil(ms / 1000), 0);

/** The most hits that a window counts. */
const MOST = 2 ** 40;

/**
 * A storage for @nestjs/throttler, for one server or many.
 *
 * A throttler's hits are a fixed window without capacity that may owe `limit` tokens: each hit owes one until the window ends,
 * so a limit that changes finds the hits that there are. A block is a bucket without capacity that may owe one token, which
 * takes `blockDuration` to come: the first denied request takes it, and until it has come nothing is counted. Both are
 * decided in one step, all or nothing, so a denied flood writes nothing. Differences: windows lie on a grid of the key's
 * own, where that package forgets each hit after its own `ttl`; a denied request is reported as one hit over the limit;
 * and when a block ends, the hits are those of the window that is open then.
 *
 * Counts belong to `name`, the throttler's name, `ttl`, `blockDuration` for a block, and the key, which the guard makes of
 * controller, handler and client. Servers share them by the same name on the same backing store.
 *
 * ```ts
 * const storage = throttlerStorage({ store: redis(client), name: "api" });
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage });
 * ```
 *
 * Throws an `InputError` where a `store` comes without a `name`, or with a name that it has already.
 */
export function throttlerStorage<S extends Store>(options: HitOptions<S> = {}): ThrottlerStorage {
  const { name, settings } = checkHits(options, "throttler", (name) => [`${name}.hits`, `${name}.block`]);
  const limiter = new Limiter<string, S>({}, settings);
  return {
    async increment(key, ttl, limit, blockDuration, throttlerName) {
      const window: Config = { kind: "fixed window", rate: MOST, period: ttl, capacity: 0, maxReserved: limit };
      const counted = hitKey(key, throttlerName, String(ttl));
      const hit = { name: `${name}.hits`, key: counted, reserve: true, config: window };
      const period = Math.max(blockDuration, 1);
      const block: Config = { kind: "token bucket", rate: 1, period, capacity: 0, maxReserved: 1 };
      const blocked = {
        name: `${name}.block`,
        key: hitKey(key, throttlerName, String(ttl), String(period)),
        config: block,
      };
      const requests = blockDuration > 0 ? [hit, { ...blocked, count: 0 }] : [hit];
      const all = (await limiter.limitAll(requests)) as AllDecision;
      if (all.degraded === true) throw all.cause;
      const [hits, blocking] = all.decisions as [Decision, Decision | undefined];
      const timeToExpire = seconds(hits.ts + ttl - hits.now);
      if (all.ok) {
        return { totalHits: Math.max(-hits.value, 0), timeToExpire, isBlocked: false, timeToBlockExpire: 0 };
      }
      let until = blocking?.ok === false ? blocking : undefined;
      if (until === undefined && blocking !== undefined) {
        // Of concurrent denials only one takes the token; the others report when it comes.
        const { name: limitName, ...target } = blocked;
        until = await limiter.limit(limitName, { ...target, reserve: true });
        if (!until.ok) until = await limiter.check(limitName, { ...target, count: 0 });
      }
      const wait = until === undefined ? timeToExpire : seconds(until.retryAfter ?? 0);
      return { totalHits: limit + 1, timeToExpire, isBlocked: true, timeToBlockExpire: Math.max(wait, 1) };
    },
  };
}
