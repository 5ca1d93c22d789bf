/**
 * Gives the engine's handles back when what held them was collected. A host without `FinalizationRegistry` keeps them: as
 * many as limits were defined.
 */
export function releasing<Handle>(release: (handle: Handle) => void): (holder: object, handle: Handle) => void {
  if (typeof FinalizationRegistry === "undefined") return () => {};
  const registry = new FinalizationRegistry<Handle>(release);
  return (holder, handle) => registry.register(holder, handle);
}
