/** A number with every bit that matters: -0 is not 0, NaN is itself. Anything else as JSON. */
export function shown(value: unknown): string {
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    return `{ ${fields.map(([name, field]) => `${name}: ${shown(field)}`).join(", ")} }`;
  }
  return value === undefined ? "undefined" : JSON.stringify(value);
}

/** Throws, with what it was about, unless `got` is `expected`: numbers to the bit, absent and undefined alike. */
export function same(got: unknown, expected: unknown, about: string): void {
  const [is, should] = [shown(got), shown(expected)];
  if (is !== should) throw new Error(`${about}: expected ${should}, got ${is}`);
}

/** Throws, with what it was about, unless it holds. */
export function holds(condition: boolean, about: string): void {
  if (!condition) throw new Error(about);
}
