/** Gives handles of the engine back when their holders were collected. */
type Held = readonly [drop: (handle: number) => void, handle: number];

/** A host without one, and one that refuses it, as workflows of Temporal do, keep handles: as many as limits were defined. */
const registry = /* @__PURE__ */ (() => {
  try {
    return new FinalizationRegistry<Held>(([drop, handle]) => drop(handle));
  } catch {
    return undefined;
  }
})();

/**
 * Gives a handle back with the engine's function `drop` when its holder was collected. `drop` is not read from the engine
 * then: at the end of a test file, Jest takes the properties of the engine that copies of the package share.
 */
export function releasedWith(holder: object, drop: (handle: number) => void, handle: number): void {
  registry?.register(holder, [drop, handle]);
}
