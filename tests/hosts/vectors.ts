/** The shared vectors, as files. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { VectorFile } from "../../npm/tidegate/src/testing/index.ts";
import { revive } from "./program/revive.js";

const folder = fileURLToPath(new URL("../vectors/", import.meta.url));

/** Every file of histories, by name; vectors of invalid input have no steps. */
export function vectorFiles(): Record<string, VectorFile> {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json") && file !== "invalid.json");
  return Object.fromEntries(files.map((file) => [file, JSON.parse(readFileSync(folder + file, "utf8")) as VectorFile]));
}

/** A vector of invalid input. `{ "$": its name }` stands for a value that JSON lacks. */
export interface Invalid {
  name: string;
  config: unknown;
  call?: Readonly<Record<string, unknown>>;
  field: string;
  error: string;
}

/** The same as JSON, for a program that revives them in its runtime. */
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
