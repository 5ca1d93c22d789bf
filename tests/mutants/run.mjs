// Applies each mutant of list.mjs to a copy of the tree: its tests have to fail. The results are kept in record.txt.
//
//   node tests/mutants/run.mjs [group] [word …]   those of a group whose file and text have all of the words;
//                                                 of `promises`, those whose promise has them
//   node tests/mutants/run.mjs --left [group] …   of these, those that were not run since they changed
//   TIDEGATE_MUTANTS=../copy node …               in a copy of its own, so that a second run can go on beside
//   node tests/mutants/run.mjs --summary          runs nothing, and prints the results of the last runs for each group
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { copy, makeCopy } from "./copy.mjs";
import { detects } from "./detect.mjs";
import { GROUPS, MUTANTS } from "./list.mjs";
import { keep, resultOf, summary } from "./record.mjs";

const words = process.argv.slice(2);
const left = words[0] === "--left" && words.shift() !== undefined;
const group = Object.hasOwn(GROUPS, words[0] ?? "") ? words.shift() : undefined;

function isChosen(mutant) {
  if (left && resultOf(mutant) !== undefined) return false;
  const { file, find, promise } = mutant;
  const text = group === "promises" ? promise : `${file}: ${find}`;
  return words.every((word) => text.includes(word));
}

/** `caught` or `missed`; `broken` with the reason: it proves nothing. */
function outcome(mutant) {
  try {
    const times = readFileSync(join(copy, mutant.file), "utf8").split(mutant.find).length - 1;
    if (times !== 1) throw new Error(`${mutant.file} has ${times} times: ${mutant.find}`);
    return [mutant.tests.some((test) => detects(test, mutant)) ? "caught" : "missed"];
  } catch (error) {
    return ["broken", error.message];
  }
}

function runAll(chosen) {
  makeCopy();
  const counts = { caught: 0, missed: 0, broken: 0 };
  for (const mutant of chosen) {
    const [result, why = ""] = outcome(mutant);
    counts[result]++;
    keep(mutant, result === "broken" ? undefined : result);
    const what = mutant.promise === undefined ? "" : `${mutant.promise}: `;
    const [find, replace] = [mutant.find, mutant.replace].map((text) => JSON.stringify(text));
    console.log(`${result} ${what}${mutant.file}: ${find} -> ${replace}${why && `\n${why}`}`);
  }
  console.log(`${chosen.length} mutants: ${counts.caught} caught, ${counts.missed} missed, ${counts.broken} broken`);
  process.exitCode = counts.caught === chosen.length ? 0 : 1;
}

if (words[0] !== "--summary") runAll((GROUPS[group] ?? MUTANTS).filter(isChosen));
console.table(summary());
