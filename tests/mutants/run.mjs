// Applies each mutant of list.mjs to a copy of the tree: its tests have to fail.
//
//   node tests/mutants/run.mjs [word …]        those whose file or text has one of the words
//   TIDEGATE_MUTANTS=../copy node …            in a copy of its own, so that a second run can go on beside
//   node tests/mutants/run.mjs promises [word …]   those of promises, one for each; with words, those whose text has one
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { copy, makeCopy, withMutant } from "./copy.mjs";
import { MUTANTS } from "./list.mjs";

const words = process.argv.slice(2);
const promises = words[0] === "promises" && words.shift() !== undefined;
const chosen = MUTANTS.filter(({ file, find, promise }) => {
  const text = promises ? promise : `${file}: ${find}`;
  return text !== undefined && (words.length === 0 || words.some((word) => text.includes(word)));
});

makeCopy();
for (const { file, find } of chosen) {
  const times = readFileSync(join(copy, file), "utf8").split(find).length - 1;
  if (times !== 1) throw new Error(`${file} has ${times} times: ${find}`);
}

/** A mutant may never end; that is a failure of its test, too. */
const LONGEST = 1_200_000;

function run(program, args, cwd = copy) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    timeout: LONGEST,
    killSignal: "SIGKILL",
    maxBuffer: 2 ** 30,
  });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}

/** A mutant that does not compile proves nothing. */
const BROKEN = /could not compile|Transform failed|PARSE_ERROR|SyntaxError/;

/** `crates/table/tests/table.rs`, a module of such a program in a folder of its own, or of the library. */
function cargo(file, name) {
  const [, crate, folder, path] = /^crates\/([^/]+)\/(src|tests)\/(.+)\.rs$/.exec(file);
  const [program, module] = folder === "tests" ? path.split("/") : [undefined, path];
  const target = program === undefined ? ["--lib"] : ["--test", program];
  const filter = name ?? (module === undefined ? [] : `${module}::`);
  const args = ["test", "--quiet", "--profile", "mutants", "--package", `tidegate-${crate}`, ...target];
  return run("cargo", [...args, "--", ...[filter].flat()]);
}

/** Whether a test of a store imports its source, and nothing of the built package. */
function importsSource(file) {
  const text = readFileSync(join(copy, file), "utf8");
  return text.includes("npm/tidegate/src/stores/") && !/from "tidegate[/"]/.test(text);
}

/** How to build what a test imports, after a change of this file; nothing, where it imports the source. */
function buildOf(file, project, changed) {
  if (changed.startsWith("crates/")) return ["npm/scripts/build.mjs"];
  if (project === "unit" || project === "house" || importsSource(file)) return undefined;
  if (changed.startsWith("npm/site/.vitepress/")) return ["npm/scripts/docs.mjs"];
  return changed.startsWith("npm/tidegate/src/") ? ["../../node_modules/tsdown/dist/run.mjs"] : undefined;
}

/** The build that has the last mutant in it. */
let stale;

function rebuild([script], cwd = script.startsWith("..") ? join(copy, "npm/tidegate") : copy) {
  const { ok, output } = run(process.execPath, [script], cwd);
  if (!ok) throw new Error(`${script} fails\n${output}`);
}

function vitest(file, name, { file: changed }) {
  const project = /^tests\/([^/]+)\//.exec(file)?.[1] ?? "unit";
  const build = buildOf(file, project, changed);
  if (stale !== undefined && project !== "unit" && stale[0] !== build?.[0]) rebuild(stale);
  if (build !== undefined) rebuild(build);
  stale = build;
  const only = name === undefined ? [] : ["-t", name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")];
  const args = ["run", "--project", project, "--bail", "1", ...only, file];
  return run(process.execPath, ["node_modules/vitest/vitest.mjs", ...args]);
}

/** Whether a test passes. A name after `::` selects from the file. */
function passes(test, mutant) {
  const [file, name] = test.split("::");
  const { ok, output } = file.endsWith(".rs") ? cargo(file, name) : vitest(file, name, mutant);
  if (BROKEN.test(output)) throw new Error(output);
  return { ok, output };
}

const sound = new Map();
/** Whether a test fails with the mutant, and passes without. */
function fails(test, mutant) {
  if (withMutant(mutant, () => passes(test, mutant).ok)) return false;
  if (!sound.has(test)) sound.set(test, passes(test, mutant));
  const { ok, output } = sound.get(test);
  if (!ok) throw new Error(`${test} fails without a mutant\n${output}`);
  return true;
}

/** `caught`, `MISSED`, or `BROKEN` with the reason: it proves nothing. */
function outcome(mutant) {
  try {
    return [mutant.tests.some((test) => fails(test, mutant)) ? "caught" : "MISSED"];
  } catch (error) {
    return ["BROKEN", error.message];
  }
}

const counts = { caught: 0, MISSED: 0, BROKEN: 0 };
for (const mutant of chosen) {
  const [result, why = ""] = outcome(mutant);
  counts[result]++;
  const what = promises ? `${mutant.promise}: ` : "";
  const [find, replace] = [mutant.find, mutant.replace].map((text) => JSON.stringify(text));
  console.log(`${result} ${what}${mutant.file}: ${find} -> ${replace}${why && `\n${why}`}`);
}
console.log(`${chosen.length} mutants: ${counts.caught} caught, ${counts.MISSED} missed, ${counts.BROKEN} broken`);
process.exitCode = counts.caught === chosen.length ? 0 : 1;
