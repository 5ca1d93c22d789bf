export const PAGE: URL;
export const README: URL;
export function withFigures(page: string, suites: unknown): string;
export function withSummary(page: string, suites: unknown): string;
