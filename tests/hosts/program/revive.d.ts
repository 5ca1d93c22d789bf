export function revive(value: unknown): unknown;
