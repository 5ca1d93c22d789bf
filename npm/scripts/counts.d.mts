export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export declare function nextest(output: string): Counts;
export declare function add(all: readonly Counts[]): Counts;
export declare function sentence(sum: Counts): string;
