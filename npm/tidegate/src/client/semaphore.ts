import { InputError } from "../limit/errors.ts";

/** Places for so many at once, shared by whoever is given it. Made by {@link semaphore}. */
export class Semaphore {
  /** How many may run at once. */
  readonly places: number;
  #held = 0;
  /** Who waits, in order: each is told once, when there is a place. */
  readonly #waiting: Set<() => void> = new Set();

  constructor(places: number) {
    if (typeof places !== "number" || !Number.isInteger(places) || places < 1) {
      throw new InputError("concurrency", "a whole number from 1, or a semaphore", places);
    }
    this.places = places;
  }

  /** How many places are taken. */
  get held(): number {
    return this.#held;
  }

  /** Takes a place, if there is one: whoever took it calls {@link release} once. */
  tryAcquire(): boolean {
    if (this.#held >= this.places) return false;
    this.#held++;
    return true;
  }

  /**
   * Waits for a place, first come, first served, and tells how to give it back; a second call of that does nothing. An
   * abort rejects with the signal's reason, a wrong option with an `InputError`.
   */
  acquire(options: { signal?: AbortSignal | undefined } = {}): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (typeof options !== "object" || options === null) {
        throw new InputError("options", "an object, such as { signal }", options);
      }
      const { signal } = options;
      if (signal !== undefined && typeof (signal as Partial<AbortSignal> | null)?.addEventListener !== "function") {
        throw new InputError("signal", "an AbortSignal", signal);
      }
      const attempt = (): void => {
        if (!this.tryAcquire()) {
          this.whenFree(attempt);
          return;
        }
        signal?.removeEventListener("abort", abort);
        let held = true;
        resolve(() => {
          if (held) this.release();
          held = false;
        });
      };
      const abort = (): void => {
        this.#waiting.delete(attempt);
        reject(signal?.reason);
      };
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      signal?.addEventListener("abort", abort, { once: true });
      attempt();
    });
  }

  /** Gives a place back. */
  release(): void {
    this.#held--;
    // A queue that has nothing to run any more does not take the place: then it is the next one's.
    for (const waiting of this.#waiting) {
      if (this.#held >= this.places) return;
      this.#waiting.delete(waiting);
      waiting();
    }
  }

  /** Calls back once, when there may be a place. */
  whenFree(callback: () => void): void {
    this.#waiting.add(callback);
  }
}

/**
 * A limit on how many run at once: the same one may be given to several throttles, and held by hand.
 *
 * ```ts
 * const four = semaphore(4);
 * const ask = throttle(askModel, policy, { concurrency: four });
 * const release = await four.acquire();
 * ```
 *
 * `places`: a whole number from 1. Throws an `InputError` for anything else.
 */
export function semaphore(places: number): Semaphore {
  return new Semaphore(places);
}
