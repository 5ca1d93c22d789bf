/** Gives handles of the engine back when their holders were collected. */
type Held = readonly [drop: (handle: number) => void, handle: number];

/** A host without one keeps handles: as many as limits were defined. */
const registry =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : /* @__PURE__ */ new FinalizationRegistry<Held>(([drop, handle]) => drop(handle));

/**
 * Gives a handle back with the engine's function `drop` when its holder was collected. `drop` is not read from the engine
 * then: at the end of a test file, Jest takes the properties of the engine that copies of the package share.
 */
export function releasedWith(holder: object, drop: (handle: number) => void, handle: number): void {
  registry?.register(holder, [drop, handle]);
}
