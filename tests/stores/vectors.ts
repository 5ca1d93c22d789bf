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
 * A part of them: every operation, several limits in a call, and numbers of every size. For a client that carries the same program
 * and numbers in a way of its own, where the program runs all vectors through another one.
 */
export const few: Record<string, VectorFile> = Object.fromEntries(
  ["limit-all.json", "operations.json", "precision.json"].map((file) => [file, vectors[file] as VectorFile]),
);
