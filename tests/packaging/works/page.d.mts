import type { Row } from "./results.ts";

export declare const RESULTS: URL;
export declare const PAGE: URL;
export declare function results(): Row[];
export declare function page(rows?: readonly Row[]): string;
