// Whether a test of the copy detects a mutant: it fails with the mutant, and passes without.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { copy, withMutant } from "./copy.mjs";

/** A mutant may never end; that is a failure of its test, too. */
const LONGEST = 1_200_000;

function run(program, args, cwd = copy) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
    timeout: LONGEST,
    killSignal: "SIGKILL",
    maxBuffer: 2 ** 30,
  });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}

/** A mutant that does not compile proves nothing. */
const BROKEN = /could not compile|Transform failed|PARSE_ERROR|SyntaxError|No test files found/;
/** Of vitest and of cargo: a run that skips all tests, or selects none, is no success. */
const PASSED = /^ *Tests .*\b\d+ passed|^test result: ok\. [1-9]/m;

/** `crates/table/tests/table.rs`, a module of such a program in a folder of its own, or of the library. */
function cargo(file, name) {
  const [, crate, folder, path] = /^crates\/([^/]+)\/(src|tests)\/(.+)\.rs$/.exec(file);
  const [program, module] = folder === "tests" ? path.split("/") : [undefined, path];
  const target = program === undefined ? ["--lib"] : ["--test", program];
  const filter = name ?? (module === undefined ? [] : `${module.replaceAll("/", "::")}::`);
  const args = ["test", "--quiet", "--profile", "mutants", "--package", `tidegate-${crate}`, ...target];
  return run("cargo", [...args, "--", ...[filter].flat()]);
}

/** The project of vitest.config.ts that has a test file. */
const projectOf = (file) => /^tests\/([^/]+)\//.exec(file)?.[1] ?? "unit";

function vitest(file, name) {
  const only = name === undefined ? [] : ["-t", name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")];
  const args = ["run", "--project", projectOf(file), "--bail", "1", ...only, file];
  return run(process.execPath, ["node_modules/vitest/vitest.mjs", ...args]);
}

/** Whether a test passes. A name after `::` selects from the file. */
function passes(test) {
  const [file, name] = test.split("::");
  const { ok, output } = file.endsWith(".rs") ? cargo(file, name) : vitest(file, name);
  if (BROKEN.test(output)) throw new Error(output);
  if (ok && !PASSED.test(output)) throw new Error(`${test}: no test ran\n${output}`);
  return { ok, output };
}

/** Whether a test of a store imports its source, and nothing of the built package. */
function importsSource(file) {
  const text = readFileSync(join(copy, file), "utf8");
  return text.includes("npm/tidegate/src/stores/") && !/from "tidegate[/"]/.test(text);
}

const TSDOWN = "../../node_modules/tsdown/dist/run.mjs";

/** What builds what a test imports, after a change of this file: a script, or tsdown in a folder. Nothing, where it imports the source. */
function buildOf(test, changed) {
  const [file] = test.split("::");
  const project = projectOf(file);
  if (file.endsWith(".rs")) return undefined;
  if (changed.startsWith("crates/")) return "npm/scripts/build.mjs";
  if (project === "unit" || project === "house" || importsSource(file)) return undefined;
  if (changed.startsWith("npm/site/.vitepress/")) return "npm/scripts/docs.mjs";
  return /^npm\/tidegate(-serve)?(?=\/src\/)/.exec(changed)?.[0];
}

/** What was built with a mutant in it. */
let stale;

function rebuild(build) {
  const [script, cwd] = build.endsWith(".mjs") ? [build, copy] : [TSDOWN, join(copy, build)];
  const { ok, output } = run(process.execPath, [script], cwd);
  if (!ok) throw new Error(`${build} fails\n${output}`);
}

/** Builds the sound tree, unless `next` is about to build the same again. */
function withoutStaleBuild(next) {
  if (stale === undefined || stale === next) return;
  rebuild(stale);
  stale = undefined;
}

function passesWith(mutant, test) {
  const build = buildOf(test, mutant.file);
  withoutStaleBuild(build);
  return withMutant(mutant, () => {
    if (build !== undefined) {
      stale = build;
      rebuild(build);
    }
    return passes(test).ok;
  });
}

const sound = new Map();
/** Whether a test fails with the mutant, and passes without. */
export function detects(test, mutant) {
  if (passesWith(mutant, test)) return false;
  if (!sound.has(test)) {
    withoutStaleBuild();
    sound.set(test, passes(test));
  }
  const { ok, output } = sound.get(test);
  if (!ok) throw new Error(`${test} fails without a mutant\n${output}`);
  return true;
}
