/** Denials that are answered again without a round trip, for a short time. */

import type { State } from "../../limit/decision.ts";

/** The states behind a denial: of one key, or of all shards. */
export interface Denial {
  readonly states: readonly (State | null)[];
  /** Whether they were stamped by a clock that was passed in. */
  readonly passed: boolean;
}

/** A denial, and `performance.now()` when the script call that returned it left. */
interface Kept {
  readonly denial: Denial;
  readonly sentAt: number;
}

/** The most keys that are kept track of. */
const MOST_KEYS = 10_000;

/**
 * A bounded memory of denials. While it lasts, a key's tokens only get fewer, except by a `give` or `reset`: one of this
 * process forgets the denial here, one of another process is seen when the denial expires.
 */
export class Denials {
  readonly #kept = new Map<string, Kept>();
  /** How many requests under way bring tokens back, by key. */
  readonly #open = new Map<string, number>();
  /** When such a request ended, by key, the oldest first: what left before that may have been answered before it. */
  readonly #closedAt = new Map<string, number>();
  /** The same for keys that {@link #closedAt} no longer has. */
  #closedBefore = Number.NEGATIVE_INFINITY;
  /** ms. */
  readonly #keepFor: number;

  /** Keeps a denial for so many ms; 0: none. */
  constructor(keepFor: number) {
    this.#keepFor = keepFor;
  }

  get(key: string): Denial | undefined {
    const kept = this.#kept.size === 0 ? undefined : this.#kept.get(key);
    if (kept === undefined) return undefined;
    if (performance.now() - kept.sentAt < this.#keepFor) return kept.denial;
    this.#kept.delete(key);
    return undefined;
  }

  forget(key: string): void {
    this.#kept.delete(key);
  }

  /** Keeps a denial by a script call that left at `sentAt` (`performance.now()`). */
  keep(key: string, denial: Denial, sentAt: number): void {
    if (this.#keepFor === 0 || this.#open.has(key)) return;
    if (sentAt <= (this.#closedAt.get(key) ?? this.#closedBefore)) return;
    // Deleted first, so that the map's order is that of the answers.
    this.#kept.delete(key);
    if (this.#kept.size >= MOST_KEYS) this.#kept.delete(first(this.#kept));
    this.#kept.set(key, { denial, sentAt });
  }

  /** Begins a request that brings tokens back. */
  open(key: string): void {
    this.#kept.delete(key);
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
  }

  /** Ends it. */
  close(key: string): void {
    const left = (this.#open.get(key) ?? 1) - 1;
    if (left === 0) this.#open.delete(key);
    else this.#open.set(key, left);
    const now = performance.now();
    this.#closedAt.delete(key);
    // What left before these ended is by now too old to be kept.
    for (const [other, at] of this.#closedAt) {
      if (now - at < this.#keepFor && this.#closedAt.size < MOST_KEYS) break;
      this.#closedAt.delete(other);
      this.#closedBefore = at;
    }
    this.#closedAt.set(key, now);
  }
}

const first = (map: ReadonlyMap<string, unknown>): string => map.keys().next().value as string;
