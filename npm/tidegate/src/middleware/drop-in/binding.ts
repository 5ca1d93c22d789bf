import type { Limiter } from "../../limiter.ts";
import type { Store } from "../../store.ts";
import { boundedKey } from "../../http/key.ts";

/** A rate limit as Cloudflare binds one: whether a key may go on, and nothing else. */
export interface RateLimitBinding {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/**
 * One limit in the shape of Cloudflare's binding, for code and middleware that were written for that.
 *
 * ```ts
 * const env = { MY_LIMIT: rateLimitBinding(limits, "api") };
 * const { success } = await env.MY_LIMIT.limit({ key });
 * ```
 */
export function rateLimitBinding<N extends string, S extends Store>(limiter: Limiter<N, S>, name: N): RateLimitBinding {
  return {
    async limit({ key }) {
      const { ok } = await limiter.limit(name, { key: boundedKey(key) });
      return { success: ok };
    },
  };
}
