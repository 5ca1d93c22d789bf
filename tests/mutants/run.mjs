// Mutants of the TypeScript that decides, made by hand: each has to fail the tests beside it.
//
//   node tests/mutants/run.mjs [word]     those whose file has the word
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MUTANTS } from "./list.mjs";

const root = join(import.meta.dirname, "../..");
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const word = process.argv[2] ?? "";
const config = join(import.meta.dirname, "vitest.config.ts");

const chosen = MUTANTS.filter(({ file }) => file.includes(word));
for (const { file, find } of chosen) {
  const parts = readFileSync(join(root, "npm/tidegate/src", file), "utf8").split(find);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${find}`);
}
/** Whether a file's tests pass with the mutant, or without one. */
const passes = (test, mutant) => {
  const env = { ...process.env, TIDEGATE_MUTANT: mutant === undefined ? "" : JSON.stringify(mutant) };
  const args = [vitest, "run", "--config", config, "--bail", "1", test];
  // A mutant may never end: that is noticed, too.
  return spawnSync(process.execPath, args, { cwd: root, env, timeout: 300_000, killSignal: "SIGKILL" }).status === 0;
};
const sound = new Map();
/** Whether a file's tests fail of the mutant, and of nothing else. */
const fails = (test, mutant) => {
  if (passes(test, mutant)) return false;
  if (!sound.has(test)) sound.set(test, passes(test));
  if (!sound.get(test)) throw new Error(`${test} fails without a mutant`);
  return true;
};
const missed = [];
for (const mutant of chosen) {
  const caught = mutant.tests.some((test) => fails(test, mutant));
  if (!caught) missed.push(mutant);
  console.log(`${caught ? "caught" : "MISSED"} ${mutant.file}: ${mutant.find} -> ${mutant.replace}`);
}
console.log(`${chosen.length} mutants: ${chosen.length - missed.length} caught, ${missed.length} missed`);
process.exitCode = missed.length === 0 ? 0 : 1;
