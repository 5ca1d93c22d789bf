/** A mutant replaces a text that its file has once, and names tests that exist: otherwise it proves nothing. */
import { MUTANTS } from "../../mutants/list.mjs";
import type { Rule, Tree } from "../tree.ts";

function everyMutantApplies(tree: Tree): string[] {
  return MUTANTS.flatMap(({ file, find, tests }) => {
    const path = `npm/tidegate/src/${file}`;
    const times = (tree.get(path) ?? "").split(find).length - 1;
    return [
      ...(times === 1 ? [] : [`${path} has ${times} times what a mutant replaces: ${find}`]),
      ...tests.filter((test) => !tree.has(test)).map((test) => `${test}, which a mutant of ${path} names, is missing`),
    ];
  });
}

export const mutants: readonly Rule[] = [
  {
    name: "every mutant applies to its file",
    check: everyMutantApplies,
    broken: [{ "npm/tidegate/src/stores/turns.ts": "export {};\n" }],
  },
];
