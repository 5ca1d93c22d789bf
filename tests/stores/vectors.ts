/** The shared vectors of histories, by the name of their file; those of invalid input have no steps. */
import { readdirSync, readFileSync } from "node:fs";
import type { Vector, VectorFile } from "tidegate/testing";

const folder = new URL("../vectors/", import.meta.url);

export const vectors: Record<string, VectorFile> = Object.fromEntries(
  readdirSync(folder)
    .filter((file) => file.endsWith(".json") && file !== "invalid.json")
    .map((file) => [file, JSON.parse(readFileSync(new URL(file, folder), "utf8")) as VectorFile]),
);

/** What a history shows: each operation on each kind of limit, by the fields that are set, and the reason of a denial. */
const casesOf = ({ config, steps = [] }: Vector): string[] =>
  steps.flatMap(({ op, reserve, config: changed, requests = [{ config: changed ?? config, reserve }], expect }) =>
    requests.map((request) => {
      const [reason] = /"reason":"[^"]*"/.exec(JSON.stringify(expect)) ?? [];
      const { kind, start, ...fields }: Record<string, unknown> = { ...request.config };
      return [op, request.reserve, kind, typeof start, ...Object.keys(fields), reason].join();
    }),
  );

/** The histories that show what none before them shows. */
function first(histories: readonly Vector[]): Vector[] {
  const shown = new Set<string>();
  return histories.filter((history) => {
    const before = shown.size;
    for (const each of casesOf(history)) shown.add(each);
    return shown.size > before;
  });
}

/**
 * Of each file the histories that show what none before them shows, and all numbers. For a client that carries the numbers of the
 * same program in a way of its own, and for a store that reads and writes what the engine decided: program and engine run all of
 * them elsewhere.
 */
export const few: Record<string, VectorFile> = Object.fromEntries(
  Object.entries(vectors).map(([file, { vectors: all }]) => [
    file,
    { vectors: file === "precision.json" ? all : first(all) },
  ]),
);
