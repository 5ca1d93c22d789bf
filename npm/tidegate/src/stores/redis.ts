/**
 * State on a Redis or Valkey server, or a cluster: one script call for the concurrent calls of a process, by the
 * server's clock.
 *
 * @module
 */
import type { RedisLike } from "./redis/clients.ts";
import { type RedisOptions, RedisStore } from "./redis/store.ts";

export type { BunRedisLike, GlideLike, IoredisLike, NodeRedisLike, RedisLike, RestRedisLike } from "./redis/clients.ts";
export { type RedisOptions, RedisStore } from "./redis/store.ts";

/**
 * A store on your client: ioredis (`Redis`, with Sentinel too, or `Cluster`), node-redis (a client, pool, cluster or
 * sentinel), Valkey GLIDE, `Bun.RedisClient`, or a REST client with `eval` and `evalsha` (Upstash, Vercel KV).
 *
 * ```ts
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: redis(new Redis()) });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * Throws an `InputError` where an option is wrong or the client is none of these. Calls reject with a `StoreError`.
 */
export function redis(client: RedisLike, options: RedisOptions = {}): RedisStore {
  return new RedisStore(client, options);
}
