/** The shared vectors of histories, by the name of their file; those of invalid input have no steps. */
import { readdirSync, readFileSync } from "node:fs";
import type { VectorFile } from "tidegate/testing";

const folder = new URL("../vectors/", import.meta.url);

export const vectors: Record<string, VectorFile> = Object.fromEntries(
  readdirSync(folder)
    .filter((file) => file.endsWith(".json") && file !== "invalid.json")
    .map((file) => [file, JSON.parse(readFileSync(new URL(file, folder), "utf8")) as VectorFile]),
);

/**
 * Every fourth history of each file. For a client that carries the numbers of the same program in a way of its own, and for a store
 * that reads and writes what the engine decided: program and engine run all of them elsewhere.
 */
export const few: Record<string, VectorFile> = Object.fromEntries(
  Object.entries(vectors).map(([file, { vectors: all }]) => [file, { vectors: all.filter((_, i) => i % 4 === 0) }]),
);
