/** A mutant replaces a text that its file has once, and names tests that exist: otherwise it proves nothing. */
import { MUTANTS } from "../../mutants/list.mjs";
import { promisesIn } from "../../mutants/promises.mjs";
import { digestOf, resultsIn } from "../../mutants/record.mjs";
import type { Rule, Tree } from "../tree.ts";

function everyMutantApplies(tree: Tree): string[] {
  return MUTANTS.flatMap(({ file, find, tests }) => {
    const times = (tree.get(file) ?? "").split(find).length - 1;
    const missing = tests.filter((test) => !tree.has(test.split("::", 1)[0] as string));
    return [
      ...(times === 1
        ? []
        : [
            `${file} has ${times} times what a mutant in tests/mutants replaces, which has to follow the code: ${find}`,
          ]),
      ...(tests.length > 0 ? [] : [`a mutant of ${file} names no test: ${find}`]),
      ...missing.map((test) => `${test}, which a mutant of ${file} names, is missing`),
    ];
  });
}

const PAGE = "npm/site/reference/promises.md";

function everyPromiseHasAMutant(tree: Tree): string[] {
  const detected = MUTANTS.flatMap(({ promise }) => promise ?? []);
  const promised = promisesIn(tree.get(PAGE) ?? "").map(({ promise }) => promise);
  return [
    ...promised.filter((promise) => !detected.includes(promise)).map((promise) => `${PAGE}: no mutant of: ${promise}`),
    ...detected.filter((promise) => !promised.includes(promise)).map((promise) => `${PAGE} has no promise: ${promise}`),
  ];
}

const RECORD = "tests/mutants/record.txt";

function noMutantIsMissed(tree: Tree): string[] {
  const results = resultsIn(tree.get(RECORD) ?? "");
  const missed = MUTANTS.filter((mutant) => results[digestOf(mutant)] === "missed");
  return missed.map(({ file, find }) => `${RECORD}: no test detects a mutant of ${file}; write one for: ${find}`);
}

export const mutants: readonly Rule[] = [
  {
    name: "every mutant applies to its file",
    check: everyMutantApplies,
    broken: [{ "npm/tidegate/src/stores/keyed-queue.ts": "export {};\n" }],
  },
  {
    name: "no mutant was missed by its tests when they last ran with it",
    check: noMutantIsMissed,
    broken: MUTANTS.slice(0, 1).map((mutant) => ({ [RECORD]: `${digestOf(mutant)} missed\n` })),
  },
  {
    name: "every promise has a mutant that its test detects",
    check: everyPromiseHasAMutant,
    broken: [{ [PAGE]: "" }, { [PAGE]: "| no promise is empty | `a test` in [a.ts](../a.ts) |\n" }],
  },
];
