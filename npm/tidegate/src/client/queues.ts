/** The queues of a function, one for each key. */
import { Queue, type QueueParts } from "./queue.ts";

/** Idle queues that are kept: they hold spare tokens. */
const KEPT = 1000;

/** Makes a queue at a key's first call. */
export class Queues<Parts extends QueueParts = QueueParts> {
  readonly #make: (key: string | undefined) => Parts;
  readonly #queues: Map<string | undefined, Queue<Parts>> = new Map();
  #next: MapIterator<[string | undefined, Queue<Parts>]> = this.#queues.entries();
  #closed = false;

  constructor(make: (key: string | undefined) => Parts) {
    this.#make = make;
  }

  get(key: string | undefined): Queue<Parts> {
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      this.#evict();
      queue = new Queue(this.#make(key));
      if (this.#closed) void queue.drain();
      this.#queues.set(key, queue);
    }
    return queue;
  }

  /** Adds to a function what it shows of its queues. */
  shownBy<F extends (...args: never[]) => unknown>(
    fn: F,
  ): F & { readonly queued: number; readonly running: number; idle(): Promise<void>; drain(): Promise<void> } {
    const methods = Object.assign(fn, { idle: () => this.#idle(), drain: () => this.#drain() });
    return Object.defineProperties(methods, {
      queued: { get: () => this.#sum("queued") },
      running: { get: () => this.#sum("running") },
    }) as ReturnType<Queues["shownBy"]> & F;
  }

  clear(reason: unknown): void {
    for (const queue of this.#queues.values()) queue.clear(reason);
  }

  async #idle(): Promise<void> {
    // A queue that was idle may have got a call from one that was not.
    while ([...this.#queues.values()].some((queue) => !queue.isIdle)) {
      await Promise.all([...this.#queues.values()].map((queue) => queue.idle()));
    }
  }

  #drain(): Promise<void> {
    this.#closed = true;
    for (const queue of this.#queues.values()) void queue.drain();
    return this.#idle();
  }

  /** Drops idle queues, in the order in which they were made; each call looks at a few. */
  #evict(): void {
    if (this.#queues.size < KEPT) return;
    let visited = 0;
    for (const [key, queue] of this.#next) {
      if (queue.isIdle) this.#queues.delete(key);
      if (++visited === 10) return;
    }
    this.#next = this.#queues.entries();
  }

  #sum(of: "queued" | "running"): number {
    let sum = 0;
    for (const queue of this.#queues.values()) sum += queue[of];
    return sum;
  }
}
