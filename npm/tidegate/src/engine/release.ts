/**
 * Gives the engine's handles back when what held them is gone. A host without `FinalizationRegistry` keeps them: there
 * are as many as limits were defined.
 */
export function releasing(release: (handle: number) => void): (holder: object, handle: number) => void {
  if (typeof FinalizationRegistry === "undefined") return () => {};
  const registry = new FinalizationRegistry<number>(release);
  return (holder, handle) => registry.register(holder, handle);
}
