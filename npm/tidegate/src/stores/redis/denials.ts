/** Denials that are repeated without a round trip, for a short time. */

import type { State } from "../../limit/decision.ts";
import { fractionOf } from "../../limit/hash.ts";

/** The states behind a denial: of one key, or of all shards that live apart. */
interface Denial {
  readonly states: readonly (State | null)[];
  /** Whether they were stamped by a clock that was passed in. */
  readonly passed: boolean;
  /** `performance.now()` when its call was sent. */
  readonly sentAt: number;
}

const MOST_KEYS = 10_000;
/** Hashes of keys. A call that returns tokens to one key keeps denials of its whole hash from being kept for a moment. */
const HASHES = 4096;
const hashOf = (key: string): number => Math.floor(fractionOf(key) * HASHES);

/**
 * A bounded memory of denials. Besides the refill, a key gains tokens only by a `give` or `reset`. One of this process
 * removes the denial here. One of another process takes effect here when the denial expires.
 */
export class Denials {
  readonly #kept = new Map<string, Denial>();
  /**
   * By hash, when the latest call that returns tokens ended (`performance.now()`), infinite while it runs: a denial that was
   * sent before may be from before it.
   */
  readonly #returnedAt = new Map<number, number>();
  /** ms. */
  readonly #keepFor: number;

  /** Keeps a denial for `keepFor` ms; 0: keeps none. */
  constructor(keepFor: number) {
    this.#keepFor = keepFor;
  }

  /** Whether no denial is kept. */
  get none(): boolean {
    return this.#kept.size === 0;
  }

  get(key: string): Denial | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    if (performance.now() - kept.sentAt < this.#keepFor) return kept;
    this.#kept.delete(key);
    return undefined;
  }

  forget(key: string): void {
    if (!this.none) this.#kept.delete(key);
  }

  keep(key: string, denial: Denial): void {
    if (this.#keepFor === 0 || denial.sentAt <= (this.#returnedAt.get(hashOf(key)) ?? -Infinity)) return;
    // Deleted first, so that the map is in the order of the answers.
    this.#kept.delete(key);
    if (this.#kept.size >= MOST_KEYS) this.#kept.delete(this.#kept.keys().next().value as string);
    this.#kept.set(key, denial);
  }

  /** Runs a call that returns tokens to a key. */
  async during<T>(key: string, run: () => Promise<T>): Promise<T> {
    const hash = hashOf(key);
    this.#kept.delete(key);
    this.#returnedAt.set(hash, Infinity);
    try {
      return await run();
    } finally {
      // If two ran, the first one's end lets denials be kept.
      this.#kept.delete(key);
      this.#returnedAt.set(hash, performance.now());
    }
  }
}
