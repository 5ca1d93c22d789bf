/** Gives handles of the engine back when their holders were collected. */
import { oncePerThread } from "./algebra.ts";

/**
 * A limit's number in a store. As the value of a `WeakMap` of limits it is collected with its store or with its limit,
 * whichever is first: a limit that is passed with calls is cached, and outlives stores.
 */
export interface Handle {
  readonly at: number;
}

type Held = readonly [drop: (handle: number) => void, handle: number];

/**
 * Gives a handle back with the engine's function `drop` when its holder was collected. `drop` is not read from the engine
 * then: at the end of a test file, Jest takes the properties of the engine that copies of the package share.
 *
 * The registry is one for all copies: one that is collected calls nothing back, and a development server drops copies.
 */
export function releasedWith(holder: object, drop: (handle: number) => void, handle: number): void {
  try {
    const registry = oncePerThread("registry", () => new FinalizationRegistry<Held>(([drop, handle]) => drop(handle)));
    registry.register(holder, [drop, handle]);
  } catch {
    // A host without one, and one that refuses it, as workflows of Temporal do, keep handles: as many as limits were defined.
  }
}
