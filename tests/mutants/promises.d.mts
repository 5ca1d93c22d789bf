/** The rows of reference/promises.md. */
export function promisesIn(page: string): { promise: string; name: string; file: string }[];
