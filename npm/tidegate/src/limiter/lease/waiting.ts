/** Those who wait until the store has told, in their order. */
import type { Decision } from "../../limit/decision.ts";
import type { Call } from "../../stores/contract.ts";

/** A request that waits. */
export interface Waiting {
  readonly call: Call;
  resolve(decision: Decision): void;
  reject(error: unknown): void;
}

export class Queue {
  #all: Waiting[] = [];
  #tokens = 0;
  #most = 0;

  get length(): number {
    return this.#all.length;
  }

  get first(): Waiting | undefined {
    return this.#all[0];
  }

  /** How many tokens all of them ask for. */
  get tokens(): number {
    return this.#tokens;
  }

  /** The most that one of them asks for, or asked for since nobody waited. */
  get most(): number {
    return this.#most;
  }

  [Symbol.iterator](): Iterator<Waiting> {
    return this.#all[Symbol.iterator]();
  }

  push(waiting: Waiting): void {
    const { count } = waiting.call;
    this.#all.push(waiting);
    this.#tokens += count;
    this.#most = Math.max(this.#most, count);
  }

  /** Whoever was answered, or waits no longer. */
  remove(waiting: Waiting): void {
    const at = this.#all.indexOf(waiting);
    if (at < 0) return;
    this.#all.splice(at, 1);
    this.#tokens -= waiting.call.count;
    if (this.#all.length === 0) this.clear();
  }

  /** All of them, none of whom waits any more. */
  clear(): Waiting[] {
    const all = this.#all;
    this.#all = [];
    this.#tokens = 0;
    this.#most = 0;
    return all;
  }
}
