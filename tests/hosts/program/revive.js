// In the vectors of invalid input, `{ "$": its name }` stands for a value that JSON lacks.

const NAMED = {
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  "-Infinity": () => Number.NEGATIVE_INFINITY,
  "-0": () => -0,
  undefined: () => undefined,
  function: () => () => 1,
  symbol: () => Symbol("1"),
  valueOf: () => ({ valueOf: () => 1 }),
};

/** The value by its name; `"1n"` names a bigint. */
export function revive(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (typeof value.$ === "string") return named(value.$);
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, revive(inner)]));
}

function named(name) {
  const made = NAMED[name] ?? (/^\d+n$/.test(name) ? () => BigInt(name.slice(0, -1)) : undefined);
  if (made === undefined) throw new Error(`a vector names an unknown value: ${name}`);
  return made();
}
