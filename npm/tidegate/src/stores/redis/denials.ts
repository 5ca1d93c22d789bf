/** Denials that are repeated without a round trip, for a short time. */

import type { State } from "../../limit/decision.ts";

/** The states behind a denial: of one key, or of all shards that live apart. */
interface Denial {
  readonly states: readonly (State | null)[];
  /** Whether they were stamped by a clock that was passed in. */
  readonly passed: boolean;
}

/** A denial, and `performance.now()` when its call was sent. */
interface Kept {
  readonly denial: Denial;
  readonly sentAt: number;
}

const MOST_KEYS = 10_000;

/**
 * A bounded memory of denials. Besides the refill, a key gains tokens only by a `give` or `reset`. One of this process
 * removes the denial here. One of another process takes effect here when the denial expires.
 */
export class Denials {
  readonly #kept = new Map<string, Kept>();
  /** By key, how many calls that return tokens are under way. */
  readonly #returning = new Map<string, number>();
  /** By key, oldest first, when the latest of them ended: a denial that was sent before may be from before it. */
  readonly #returnedAt = new Map<string, number>();
  /** The same for keys that {@link #returnedAt} no longer has. */
  #returnedBefore = -Infinity;
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
    if (performance.now() - kept.sentAt < this.#keepFor) return kept.denial;
    this.#kept.delete(key);
    return undefined;
  }

  forget(key: string): void {
    if (!this.none) this.#kept.delete(key);
  }

  /** Keeps a denial that was sent at `sentAt` (`performance.now()`). */
  keep(key: string, denial: Denial, sentAt: number): void {
    if (this.#keepFor === 0 || this.#returning.has(key)) return;
    if (sentAt <= (this.#returnedAt.get(key) ?? this.#returnedBefore)) return;
    // Deleted first, so that the map is in the order of the answers.
    this.#kept.delete(key);
    if (this.#kept.size >= MOST_KEYS) this.#kept.delete(this.#kept.keys().next().value as string);
    this.#kept.set(key, { denial, sentAt });
  }

  /** Runs a call that returns tokens to a key. */
  async during<T>(key: string, run: () => Promise<T>): Promise<T> {
    this.#kept.delete(key);
    this.#returning.set(key, (this.#returning.get(key) ?? 0) + 1);
    try {
      return await run();
    } finally {
      this.#ended(key);
    }
  }

  #ended(key: string): void {
    const left = (this.#returning.get(key) ?? 1) - 1;
    if (left === 0) this.#returning.delete(key);
    else this.#returning.set(key, left);
    const now = performance.now();
    this.#returnedAt.delete(key);
    // A denial that was sent before these ended is by now too old to be kept.
    for (const [other, at] of this.#returnedAt) {
      if (now - at < this.#keepFor && this.#returnedAt.size < MOST_KEYS) break;
      this.#returnedAt.delete(other);
      this.#returnedBefore = at;
    }
    this.#returnedAt.set(key, now);
  }
}
