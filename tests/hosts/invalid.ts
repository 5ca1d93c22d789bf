/** The shared vectors of invalid input. */
import { readFileSync } from "node:fs";
import { revive } from "./program/revive.js";

const read = (): { vectors: unknown[] } =>
  JSON.parse(readFileSync(new URL("../vectors/invalid.json", import.meta.url), "utf8")) as { vectors: unknown[] };

/** A vector of invalid input. `{ "$": its name }` stands for a value that JSON lacks. */
export interface Invalid {
  name: string;
  config: unknown;
  call?: Readonly<Record<string, unknown>>;
  field: string;
  error: string;
}

/** The same as JSON, for a program that revives them in its runtime. */
export const invalidJson = (): string => JSON.stringify(read().vectors);

export function invalidVectors(): Invalid[] {
  return (read().vectors as Invalid[]).map((vector) => ({
    ...vector,
    config: revive(vector.config),
    call: revive(vector.call ?? {}) as Invalid["call"] & object,
  }));
}
