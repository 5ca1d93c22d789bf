import type { MUTANTS } from "./list.mjs";
/** Names a mutant with its tests: each change of either needs a new run. */
export function digestOf(mutant: (typeof MUTANTS)[number]): string;
