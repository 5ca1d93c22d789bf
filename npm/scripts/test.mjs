// `npm test`: sets up, builds, runs every step, and ends with the line "N passed, N failed".
//
//   npm test -- --all          and the upkeep that CI asks for
//   npm test -- rust unit      only the steps whose name has one of these words
//   TIDEGATE_REQUIRE_ALL=1     a step that cannot run here is a failure
import { spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { build } from "./build.mjs";
import { add, cargo, nextest, sentence, settle, single, vitest } from "./counts.mjs";
import { missing } from "./needs.mjs";
import { root } from "./run.mjs";
import { steps, upkeep } from "./steps.mjs";

const words = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const all = process.argv.includes("--all");
const requireAll = process.env.TIDEGATE_REQUIRE_ALL === "1";
const readers = { cargo, nextest, vitest };
const reports = join(root, "node_modules", ".cache", "tidegate", "reports");

/** Runs a step; what it writes is shown as it comes, and kept. */
function watch(command, args) {
  const env = { ...process.env, PATH: join(root, "node_modules", ".bin") + delimiter + process.env.PATH };
  const child = spawn(command, args, {
    cwd: root,
    env,
    shell: process.platform === "win32",
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ]) {
    from.setEncoding("utf8");
    from.on("data", (text) => {
      output += text;
      to.write(text);
    });
  }
  return new Promise((done) => {
    child.on("error", (error) => done({ status: 1, output: `${output}${error.message}` }));
    child.on("close", (status) => done({ status: status ?? 1, output }));
  });
}

async function runStep(step, index) {
  console.log(`\n=== ${step.name}`);
  const absent = missing(step.needs ?? []);
  if (absent.length > 0) {
    for (const [program, install] of absent) console.log(`!!! ${step.name} needs ${program}: ${install}`);
    return { ...add([]), [requireAll ? "failed" : "skipped"]: 1 };
  }
  step.prepare?.();
  const first = await attempt(step, `${index}`);
  if (first.failed === 0 || !step.outside) return first;
  console.log(`\n!!! ${step.name} FAILED, and drives programs that are not ours: it is run once more`);
  return { ...(await attempt(step, `${index}-again`)), again: 1 };
}

/** One run of a step, counted. */
async function attempt(step, name) {
  const [command, ...args] = step.command;
  const report = join(reports, `${name}.json`);
  if (step.counts === "vitest") args.push("--reporter=default", "--reporter=json", `--outputFile.json=${report}`);
  console.log(`> ${[command, ...args].join(" ")}`);
  const { status, output } = await watch(command, args);
  if (step.counts === "single") return single(status);
  try {
    const counts = readers[step.counts](step.counts === "vitest" ? report : output);
    return settle(counts, status);
  } catch (error) {
    console.error(`${step.name} left no report: ${error.message}`);
    return single(1);
  }
}

build();
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });
const table = [];
const chosen = [...steps(), ...(all ? upkeep() : [])].filter(
  ({ name }) => words.length === 0 || words.some((word) => name.includes(word)),
);
for (const [index, step] of chosen.entries()) {
  const started = Date.now();
  const counts = await runStep(step, index);
  table.push({ step: step.name, ...counts, seconds: Math.round((Date.now() - started) / 1000) });
}
console.log("");
console.table(table);
const sum = add(table);
if (requireAll) sum.failed += sum.skipped;
console.log(sentence(requireAll ? { ...sum, skipped: 0 } : sum));
process.exitCode = sum.failed === 0 && sum.passed > 0 ? 0 : 1;
