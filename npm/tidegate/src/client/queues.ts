import { Queue, type QueueParts } from "./queue.ts";

/** Queues that are kept though nothing is in them: they know what a server told, and which tokens are spare. */
const KEPT = 1000;

/** A queue for each key. */
export class Queues {
  readonly #make: (key: string | undefined) => QueueParts;
  readonly #queues: Map<string | undefined, Queue> = new Map();
  #closed = false;

  constructor(make: (key: string | undefined) => QueueParts) {
    this.#make = make;
  }

  get(key: string | undefined): Queue {
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      this.#forget();
      queue = new Queue(this.#make(key));
      if (this.#closed) void queue.drain();
      this.#queues.set(key, queue);
    }
    return queue;
  }

  get queued(): number {
    return this.#sum((queue) => queue.queued);
  }
  get running(): number {
    return this.#sum((queue) => queue.running);
  }

  clear(reason: unknown): void {
    for (const queue of this.#queues.values()) queue.clear(reason);
  }

  async idle(): Promise<void> {
    // One that was idle may have got a call from another that was not.
    while (this.queued + this.running > 0) await Promise.all([...this.#queues.values()].map((queue) => queue.idle()));
  }

  drain(): Promise<void> {
    this.#closed = true;
    for (const queue of this.#queues.values()) void queue.drain();
    return this.idle();
  }

  /** The oldest ones with nothing in them go, a few at a time. */
  #forget(): void {
    if (this.#queues.size < KEPT) return;
    let looked = 0;
    for (const [key, queue] of this.#queues) {
      if (queue.quiet) this.#queues.delete(key);
      if (++looked === 10) return;
    }
  }

  #sum(of: (queue: Queue) => number): number {
    let sum = 0;
    for (const queue of this.#queues.values()) sum += of(queue);
    return sum;
  }
}
