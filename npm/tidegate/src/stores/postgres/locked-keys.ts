/** Keys whose rows another transaction has locked. Their requests wait in queues of their own, so that no other waits. */
import type { PendingRequest } from "./request.ts";

/** The reason that such a request fails with. */
export const LOCKED = "the row is locked by another transaction";
/** ms between two attempts that do not wait for the lock, at first and at most. */
const PAUSE = 5;
const MOST_PAUSE = 80;
/** ms for which a key keeps its queue after its row was last seen locked. */
const QUIET = 1000;
/** Most keys with a queue that is empty. */
const MOST_IDLE = 10_000;

export class LockedKey {
  /** Its requests, in their order. */
  requests: PendingRequest[] = [];
  /** Whether a statement on its row is out. */
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
export class LockedKeys {
  readonly #keys = new Map<string, LockedKey>();

  get size(): number {
    return this.#keys.size;
  }

  /** The key whose queue this request joins. `undefined`: it can leave with others, as a read with no request before it. */
  of(pending: PendingRequest): LockedKey | undefined {
    for (const id of pending.ids) {
      const key = this.#keys.get(id);
      if (key !== undefined && !(pending.reads && key.requests.length === 0 && !key.out)) return key;
    }
    return undefined;
  }

  /** Notes that the row was found locked. */
  lock(id: string, now: number, cause: unknown): LockedKey {
    const key = this.#keys.get(id) ?? new LockedKey(id);
    key.lockedAt = now;
    key.cause = cause;
    key.attempts++;
    this.#keys.delete(id);
    this.#keys.set(id, key);
    if (this.#keys.size > MOST_IDLE) this.#forgetOne();
    return key;
  }

  has(id: string): boolean {
    return this.#keys.has(id);
  }

  /** Puts the next attempt off, for longer after each. */
  pause(key: LockedKey, now: number): void {
    key.notBefore = now + Math.min(MOST_PAUSE, PAUSE * 2 ** key.attempts);
  }

  /**
   * Notes that a statement on the row was carried out, and whether it `waited` for another transaction. Returns the
   * requests that can leave with others again.
   */
  free(key: LockedKey, now: number, waited: boolean): PendingRequest[] {
    key.attempts = 0;
    key.notBefore = 0;
    if (waited) key.lockedAt = now;
    if (now - key.lockedAt < QUIET) return [];
    this.#keys.delete(key.id);
    return key.requests.splice(0);
  }

  /** Up to `most` keys whose requests may be sent, those first that have waited longest for an attempt. */
  due(now: number, most: number): LockedKey[] {
    return [...this.#waiting()].filter(({ notBefore }) => notBefore <= now).slice(0, most);
  }

  /** `performance.now()`, ms, of the next attempt that is not due yet; `undefined` where there is none. */
  nextAt(now: number): number | undefined {
    const later = [...this.#waiting()].map(({ notBefore }) => notBefore).filter((at) => at > now);
    return later.length === 0 ? undefined : Math.min(...later);
  }

  *#waiting(): Iterable<LockedKey> {
    for (const key of this.#keys.values()) if (key.requests.length > 0 && !key.out) yield key;
  }

  #forgetOne(): void {
    for (const [id, { requests, out }] of this.#keys) {
      if (requests.length > 0 || out) continue;
      this.#keys.delete(id);
      return;
    }
  }
}
