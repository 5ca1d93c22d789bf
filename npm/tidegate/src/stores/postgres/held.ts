/** Keys whose rows another transaction has locked: their calls wait apart, so that no other call waits with them. */
import type { Pending } from "./pending.ts";

/** The reason that such a call fails with. */
export const LOCKED = "the row is locked by another transaction";
/** ms between two attempts that do not wait for the lock, at first and at most. */
const PAUSE = 5;
const MOST_PAUSE = 80;
/** ms for which a key is kept apart after its row was last seen locked. */
const QUIET = 1000;
/** Keys that are kept apart without a waiting call. */
const MOST_IDLE = 10_000;

/** One such key. */
export class Held {
  /** Its calls, in their order. */
  calls: Pending[] = [];
  /** Whether a statement is out about it. */
  out = false;
  /** Attempts that found the row locked since one that did not. */
  attempts = 0;
  /** `performance.now()`, ms, of the last of them, and before which there is no other. */
  lockedAt = 0;
  notBefore = 0;
  cause: unknown;

  constructor(readonly id: string) {}
}

/** All such keys of a store. */
export class HeldKeys {
  readonly #keys = new Map<string, Held>();

  get size(): number {
    return this.#keys.size;
  }

  /** The key that this call waits for; `undefined` where it can leave with others, as a read with no call before it. */
  of(pending: Pending): Held | undefined {
    for (const id of pending.about) {
      const held = this.#keys.get(id);
      if (held !== undefined && !(pending.reads && held.calls.length === 0 && !held.out)) return held;
    }
    return undefined;
  }

  /** Notes that the row was found locked. */
  lock(id: string, now: number, cause: unknown): Held {
    const held = this.#keys.get(id) ?? new Held(id);
    held.lockedAt = now;
    held.cause = cause;
    held.attempts++;
    this.#keys.delete(id);
    this.#keys.set(id, held);
    if (this.#keys.size > MOST_IDLE) this.#forgetOne();
    return held;
  }

  has(id: string): boolean {
    return this.#keys.has(id);
  }

  /** Puts the next attempt off, for longer after each. */
  pause(held: Held, now: number): void {
    held.notBefore = now + Math.min(MOST_PAUSE, PAUSE * 2 ** held.attempts);
  }

  /**
   * Notes that a statement about it was carried out, and whether that `waited` for another transaction. Returns the calls
   * that can leave with others again.
   */
  free(held: Held, now: number, waited: boolean): Pending[] {
    held.attempts = 0;
    held.notBefore = 0;
    if (waited) held.lockedAt = now;
    if (now - held.lockedAt < QUIET) return [];
    this.#keys.delete(held.id);
    return held.calls.splice(0);
  }

  /** Keys with waiting calls whose time has come, up to so many, those first that have waited longest for an attempt. */
  due(now: number, most: number): Held[] {
    const due: Held[] = [];
    for (const held of this.#keys.values()) {
      if (due.length === most) break;
      if (held.calls.length > 0 && !held.out && held.notBefore <= now) due.push(held);
    }
    return due;
  }

  /** `performance.now()`, ms, of the next attempt that has to be waited for; `undefined` where there is none. */
  nextAt(now: number): number | undefined {
    let next: number | undefined;
    for (const { calls, out, notBefore } of this.#keys.values()) {
      if (calls.length > 0 && !out && notBefore > now && !(notBefore >= (next ?? notBefore + 1))) next = notBefore;
    }
    return next;
  }

  #forgetOne(): void {
    for (const [id, { calls, out }] of this.#keys) {
      if (calls.length > 0 || out) continue;
      this.#keys.delete(id);
      return;
    }
  }
}
