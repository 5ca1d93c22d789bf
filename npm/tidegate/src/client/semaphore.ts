/** A bound on how many calls run at one time. */
import { throwIfAborted, whenAborted } from "../limit/abort.ts";
import { type Check, check, checkTable, hasMethods, integerFrom, SIGNAL } from "../limit/checks.ts";

export const PLACES: Check = integerFrom("an integer from 1", 1);

/** By the method that no other library's semaphore has: one of another copy of the package is shared, too. */
export const isSemaphore = (value: unknown): value is Semaphore => hasMethods(value, "whenFree");

/** A bound on how many run concurrently, shared by its holders. Made by {@link semaphore}. */
export class Semaphore {
  /** How many may run concurrently. */
  readonly places: number;
  #held = 0;
  /** Callbacks in order: each is called once, when a place is free. */
  readonly #waiting: Set<() => void> = new Set();
  /** The next ones. A new iterator would pass over all that were called before it. */
  #next: SetIterator<() => void> = this.#waiting.values();

  constructor(places: number) {
    this.places = check("places", places, PLACES);
  }

  /** How many places are taken. */
  get held(): number {
    return this.#held;
  }

  /** Takes a place if one is free; call {@link release} once afterwards. */
  tryAcquire(): boolean {
    if (this.#held >= this.places) return false;
    this.#held++;
    return true;
  }

  /**
   * Waits for a place, first come, first served, and resolves with the function that releases it; calling that twice
   * does no harm. An abort rejects with the signal's reason, a wrong option with an `InputError`.
   */
  async acquire(options: { signal?: AbortSignal | undefined } = {}): Promise<() => void> {
    checkTable("acquire", options, { signal: SIGNAL });
    const { signal } = options;
    throwIfAborted(signal);
    await new Promise<void>((resolve, reject) => {
      const attempt = (): void => {
        if (!this.tryAcquire()) {
          this.whenFree(attempt);
          return;
        }
        forget?.();
        resolve();
      };
      const abort = (_: unknown, reason: unknown): void => {
        this.#waiting.delete(attempt);
        forget?.();
        reject(reason);
      };
      const forget = signal && whenAborted(signal, abort, attempt);
      attempt();
    });
    let held = true;
    return () => {
      if (held) this.release();
      held = false;
    };
  }

  /** Releases a place; does nothing if none is taken. */
  release(): void {
    if (this.#held > 0) this.#held--;
    // A queue that has become empty does not take the place; the next one may.
    for (const waiting of this.#next) {
      this.#waiting.delete(waiting);
      waiting();
      if (this.#held >= this.places) return;
    }
    this.#next = this.#waiting.values();
  }

  /** Calls back once, when there may be a place. */
  whenFree(callback: () => void): void {
    this.#waiting.add(callback);
  }
}

/**
 * A limit on how many run concurrently: share it between throttled functions, or acquire places directly.
 *
 * ```ts
 * const four = semaphore(4);
 * const ask = throttle(askModel, policy, { concurrency: four });
 * const release = await four.acquire();
 * ```
 *
 * `places`: an integer from 1. Throws an `InputError` for anything else.
 */
export function semaphore(places: number): Semaphore {
  return new Semaphore(places);
}
