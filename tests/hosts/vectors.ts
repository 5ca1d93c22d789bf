/** The shared vectors, as files. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { VectorFile } from "../../npm/tidegate/src/testing/index.ts";

const folder = fileURLToPath(new URL("../vectors/", import.meta.url));

/** Every file of histories, by name; those of bad input have no steps. */
export function vectorFiles(): Record<string, VectorFile> {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json") && file !== "invalid.json");
  return Object.fromEntries(files.map((file) => [file, JSON.parse(readFileSync(folder + file, "utf8")) as VectorFile]));
}

/** A vector of bad input. What JSON has no value for is `{ "$": its name }`. */
export interface Invalid {
  name: string;
  config: unknown;
  call?: Readonly<Record<string, unknown>>;
  field: string;
  error: string;
}

const NAMED: Readonly<Record<string, () => unknown>> = {
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  "-Infinity": () => Number.NEGATIVE_INFINITY,
  "-0": () => -0,
  undefined: () => undefined,
  function: () => () => 1,
  symbol: () => Symbol("1"),
  valueOf: () => ({ valueOf: () => 1 }),
};

function revive(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const name = (value as { $?: unknown }).$;
  if (typeof name === "string") {
    const made = NAMED[name] ?? (/^\d+n$/.test(name) ? () => BigInt(name.slice(0, -1)) : undefined);
    if (made === undefined) throw new Error(`a vector names an unknown value: ${name}`);
    return made();
  }
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, revive(inner)]));
}

/** The same as JSON, for a program that revives them where it runs. */
export function invalidJson(): string {
  const { vectors } = JSON.parse(readFileSync(`${folder}invalid.json`, "utf8")) as { vectors: unknown[] };
  return JSON.stringify(vectors);
}

export function invalidVectors(): Invalid[] {
  const { vectors } = JSON.parse(readFileSync(`${folder}invalid.json`, "utf8")) as { vectors: Invalid[] };
  return vectors.map((vector) => ({
    ...vector,
    config: revive(vector.config),
    call: revive(vector.call ?? {}) as Invalid["call"] & object,
  }));
}
