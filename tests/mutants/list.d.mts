export const MUTANTS: readonly {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly tests: readonly string[];
}[];
