interface Mutant {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Files, each with the name of one of its tests after `::` where only that has to fail. */
  readonly tests: readonly string[];
  /** The promise of reference/promises.md whose own test detects it. */
  readonly promise?: string;
}
export const MUTANTS: readonly Mutant[];
/** By the file that lists them. */
export const GROUPS: Readonly<Record<string, readonly Mutant[]>>;
