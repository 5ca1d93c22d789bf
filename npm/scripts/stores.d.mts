/** A page with a table of stores between its markers. */
export interface Page {
  readonly file: string;
  make(): string;
}
export declare const PAGES: readonly Page[];
export declare function fresh(text: string, make: () => string): string | undefined;
