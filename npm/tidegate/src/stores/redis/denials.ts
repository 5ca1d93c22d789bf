/** What was last denied: until the tokens are there, the answer is known without asking the server. */

import type { State } from "../../decision.ts";

/** The states behind a denial: of one key, or of all shards. */
export interface Denial {
  readonly states: readonly (State | null)[];
  /** Whether they were stamped by a clock that was passed in. */
  readonly passed: boolean;
}

/** A bounded memory of denials. Tokens only get fewer while others take; whatever brings some back forgets. */
export class Denials {
  readonly #known = new Map<string, Denial>();
  /** Requests under way that bring tokens back, by key. */
  readonly #pending = new Map<string, number>();
  /** The last script call that may have been answered before such a request was carried out, by key. */
  readonly #stale = new Map<string, number>();

  readonly #most: number;

  /** Of this many keys at the most; 0: of none. */
  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Denial | undefined {
    return this.#known.size === 0 ? undefined : this.#known.get(key);
  }

  forget(key: string): void {
    this.#known.delete(key);
  }

  /** Keeps a denial that the script call with number `sent` told. */
  keep(key: string, denial: Denial, sent: number): void {
    if (this.#most === 0 || this.#pending.has(key) || sent <= (this.#stale.get(key) ?? -1)) return;
    if (this.#known.size >= this.#most && !this.#known.has(key)) {
      const [oldest] = this.#known.keys();
      this.#known.delete(oldest as string);
    }
    this.#known.set(key, denial);
  }

  /** Begins a request that brings tokens back. */
  open(key: string): void {
    this.#known.delete(key);
    this.#pending.set(key, (this.#pending.get(key) ?? 0) + 1);
  }

  /** Ends it; `lastSent` is the number of the last script call so far. */
  close(key: string, lastSent: number): void {
    const left = (this.#pending.get(key) ?? 1) - 1;
    if (left === 0) this.#pending.delete(key);
    else this.#pending.set(key, left);
    this.#stale.set(key, lastSent);
  }

  /** Script calls before this number are answered: what was held back on their account no longer is. */
  answered(before: number): void {
    if (this.#stale.size === 0) return;
    for (const [key, sent] of this.#stale) if (sent < before) this.#stale.delete(key);
  }
}
