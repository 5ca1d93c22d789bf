// The result of each mutant's last run, by the mutant's digest: a changed mutant has none.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GROUPS, MUTANTS } from "./list.mjs";

const RECORD = join(import.meta.dirname, "record.txt");

/** Names a mutant with its tests: each change of either needs a new run. */
export function digestOf({ file, find, replace, tests }) {
  return createHash("sha256")
    .update(JSON.stringify([file, find, replace, tests]))
    .digest("hex")
    .slice(0, 12);
}

/** The results by digest. Each is a line of its own, so that git joins those of two branches (`.gitattributes`). */
export const resultsIn = (text) => Object.fromEntries(text.split("\n").map((line) => line.split(" ")));

const read = () => resultsIn(readFileSync(RECORD, "utf8"));

/** The result of a mutant's last run; `undefined` if there is none since it changed. */
export const resultOf = (mutant) => read()[digestOf(mutant)];

/** Keeps a mutant's result, and drops those of mutants that are no more. */
export function keep(mutant, result) {
  const results = { ...read(), [digestOf(mutant)]: result };
  const rows = [...new Set(MUTANTS.map(digestOf))].sort().filter((digest) => results[digest] !== undefined);
  writeFileSync(RECORD, rows.map((digest) => `${digest} ${results[digest]}\n`).join(""));
}

/** For each group, how many of its mutants the last runs caught and missed, and how many were not run since they changed. */
export function summary() {
  const results = read();
  return Object.entries(GROUPS).map(([group, mutants]) => {
    const having = (result) => mutants.filter((mutant) => results[digestOf(mutant)] === result).length;
    return { group, mutants: mutants.length, caught: having("caught"), missed: having("missed"), "not run": having() };
  });
}
