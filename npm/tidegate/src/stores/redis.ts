/**
 * State on a Redis or Valkey server, or a cluster of them: one script call for whatever is asked in one turn of the
 * event loop, by the server's clock.
 *
 * @module
 */
import type { RedisLike } from "./redis/client.ts";
import type { RedisOptions } from "./redis/options.ts";
import { RedisStore } from "./redis/store.ts";

export type { IoredisLike, NodeRedisLike, RedisLike, RestRedisLike } from "./redis/client.ts";
export type { RedisOptions } from "./redis/options.ts";
export { RedisStore } from "./redis/store.ts";

/**
 * A store on the client that you have: ioredis (`Redis`, with Sentinel too, or `Cluster`), node-redis (a client, pool,
 * cluster or sentinel), or a REST client with `eval` and `evalsha`.
 *
 * ```ts
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: redis(new Redis()) });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * Throws an `InputError` where an option is wrong or the client is none that it knows. Its calls reject with a
 * `StoreError`.
 */
export function redis(client: RedisLike, options: RedisOptions = {}): RedisStore {
  return new RedisStore(client, options);
}
