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
 * One for all copies of the package: a registry that is collected calls nothing back, and a development server drops copies. A
 * host without one, and one that refuses it, as workflows of Temporal do, keep handles: as many as limits were defined.
 */
const registry = (): FinalizationRegistry<Held> | undefined =>
  oncePerThread("registry", () => {
    try {
      return new FinalizationRegistry<Held>(([drop, handle]) => drop(handle));
    } catch {
      return undefined;
    }
  });

/**
 * Gives a handle back with the engine's function `drop` when its holder was collected. `drop` is not read from the engine
 * then: at the end of a test file, Jest takes the properties of the engine that copies of the package share.
 */
export function releasedWith(holder: object, drop: (handle: number) => void, handle: number): void {
  registry()?.register(holder, [drop, handle]);
}
