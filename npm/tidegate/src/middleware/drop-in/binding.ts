/** A limit in the shape of Cloudflare's rate limit binding. */
import { checkObject } from "../../limit/checks.ts";
import { checkDefined, checkLimiter } from "../../limiter/check-limiter.ts";
import type { Limiter } from "../../limiter/limiter.ts";
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
 *
 * Throws an `InputError` if `name` is none of the limits.
 */
export function rateLimitBinding<N extends string>(limiter: Limiter<N>, name: N): RateLimitBinding {
  checkLimiter(limiter, "limit");
  checkDefined(name, limiter.names);
  return {
    async limit(options) {
      checkObject("options", options, "an object with key");
      const { key } = options;
      const { ok } = await limiter.limit(name, { key: boundedKey(key) });
      return { success: ok };
    },
  };
}
