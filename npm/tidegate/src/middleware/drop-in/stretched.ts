/** Counts hits whose windows @fastify/rate-limit prolongs. */
import { MAX_COUNT } from "../../engine/generated/bounds.ts";
import type { Decision } from "../../limit/decision.ts";
import type { Limiter } from "../../limiter/limiter.ts";
import type { Store } from "../../stores/contract.ts";
import { BLOCK, hitKey, window } from "./algebra.ts";
import { type CheckedHits, hitLimiter } from "./options.ts";

/** Hits of a key, and how many ms its window or block still lasts. */
export interface Current {
  current: number;
  ttl: number;
}

/** The limits that a {@link StretchedCounter} adds to its name. */
export const stretchedNames = (name: string): readonly string[] => [`${name}.hits`, `${name}.over`, `${name}.block`];

/**
 * Hits of @fastify/rate-limit with `continueExceeding` or `exponentialBackoff`. Three limits count a key: the hits up to
 * `max`, the hits over it, and a block that each of these extends. Every step only takes tokens, so a concurrent request
 * never finds less than is counted.
 */
export class StretchedCounter<S extends Store> {
  readonly #limiter: Limiter<string, S>;
  readonly #hits: string;
  readonly #over: string;
  readonly #block: string;

  constructor(checked: CheckedHits<S>) {
    this.#limiter = hitLimiter(checked);
    [this.#hits, this.#over, this.#block] = stretchedNames(checked.name) as [string, string, string];
  }

  async hit(key: string, period: number, max: number, backoff: boolean): Promise<Current> {
    const counted = hitKey(key, String(period));
    const all = await this.#limiter.limitAll(this.#requests(counted, period, max));
    if (all.degraded === true) throw all.cause;
    const [hits, over, block] = all.decisions as [Decision, Decision, Decision];
    if (all.ok) return { current: -hits.value, ttl: hits.ts + period - hits.now };
    let before = MAX_COUNT - over.value;
    if (block.ok) {
      before = 0;
      await this.#limiter.reset(this.#over, { key: counted, config: window(MAX_COUNT) });
    }
    const ttl = backoff ? Math.min(period * 2 ** before, MAX_COUNT) : period;
    // Kept until the block ends.
    const kept = Math.min(before === 0 ? ttl : over.now - over.ts + ttl, MAX_COUNT);
    const { value } = await this.#limiter.charge(this.#over, { key: counted, config: window(kept) });
    const count = ttl + block.value;
    if (count > 0) {
      // Denied when a concurrent request has extended the block.
      const config = { ...BLOCK, maxReserved: ttl };
      await this.#limiter.limit(this.#block, { key: counted, count, reserve: true, config });
    }
    return { current: max + MAX_COUNT - value, ttl };
  }

  async read(key: string, period: number, max: number): Promise<Current> {
    const counted = hitKey(key, String(period));
    const requests = this.#requests(counted, period, max).map((request) => ({ ...request, count: 0 }));
    const all = await this.#limiter.checkAll(requests);
    if (all.degraded === true) throw all.cause;
    const [hits, over, block] = all.decisions as [Decision, Decision, Decision];
    if (!block.ok) return { current: max + MAX_COUNT - over.value, ttl: -block.value };
    return { current: Math.max(-hits.value, 0), ttl: hits.value < 0 ? hits.ts + period - hits.now : 0 };
  }

  #requests(key: string, period: number, max: number) {
    return [
      { name: this.#hits, key, reserve: true, config: window(period, max) },
      // Read only. Its window ends with the block, which decides whether the hits over `max` count.
      { name: this.#over, key, count: 0, config: window(MAX_COUNT) },
      { name: this.#block, key, count: 0, config: BLOCK },
    ];
  }
}
