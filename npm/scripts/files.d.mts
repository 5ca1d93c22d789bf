export declare function digestOf(base: string, paths: readonly string[], extra?: string): string;
