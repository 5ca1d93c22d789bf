/** The shared vectors of histories, by the name of their file; those of invalid input have no steps. */
import { readdirSync, readFileSync } from "node:fs";
import type { VectorFile } from "tidegate/testing";

const folder = new URL("../vectors/", import.meta.url);

export const vectors: Record<string, VectorFile> = Object.fromEntries(
  readdirSync(folder)
    .filter((file) => file.endsWith(".json") && file !== "invalid.json")
    .map((file) => [file, JSON.parse(readFileSync(new URL(file, folder), "utf8")) as VectorFile]),
);
