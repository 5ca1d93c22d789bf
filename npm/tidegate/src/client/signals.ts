/** Who leaves when a signal is aborted: one listener for each signal, however many wait on it. */
export class Signals<T> {
  readonly #left: (who: ReadonlySet<T>, reason: unknown) => void;
  readonly #waiting: Map<AbortSignal, { who: Set<T>; listener: () => void }> = new Map();

  /** `left` is told all of a signal's at once. */
  constructor(left: (who: ReadonlySet<T>, reason: unknown) => void) {
    this.#left = left;
  }

  add(signal: AbortSignal, one: T): void {
    let known = this.#waiting.get(signal);
    if (known === undefined) {
      const who = new Set<T>();
      const listener = (): void => {
        this.#waiting.delete(signal);
        this.#left(who, signal.reason);
      };
      known = { who, listener };
      this.#waiting.set(signal, known);
      signal.addEventListener("abort", listener, { once: true });
    }
    known.who.add(one);
  }

  remove(signal: AbortSignal, one: T): void {
    const known = this.#waiting.get(signal);
    if (known === undefined) return;
    known.who.delete(one);
    if (known.who.size > 0) return;
    this.#waiting.delete(signal);
    signal.removeEventListener("abort", known.listener);
  }
}
