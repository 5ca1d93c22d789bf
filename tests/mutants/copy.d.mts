import type { MUTANTS } from "./list.mjs";
/** Runs `what` while `find` is replaced in a file of the copy. */
export function withMutant<T>(mutant: (typeof MUTANTS)[number], what: () => T): T;
