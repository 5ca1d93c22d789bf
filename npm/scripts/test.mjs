// `npm test`: builds, runs what proves the product, and ends with the line "N passed, N failed".
//
//   npm test -- --all          every step, as CI does
//   npm test -- rust unit      the steps whose name has one of these words
//   TIDEGATE_REQUIRE_ALL=1     a step that cannot run here is a failure
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { add, cargo, nextest, sentence, settle, single, vitest } from "./counts.mjs";
import { missing } from "./needs.mjs";
import { env, root, stop } from "./run.mjs";
import { cargoSteps, lastSteps, nodeSteps } from "./steps.mjs";
import { watch } from "./watch.mjs";

const words = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const all = process.argv.includes("--all");
const requireAll = process.env.TIDEGATE_REQUIRE_ALL === "1";
const readers = { cargo, nextest, vitest };
const reports = join(root, "node_modules", ".cache", "tidegate", "reports");

/** Runs a step once, and counts its tests. */
async function runStep(step) {
  const absent = missing(step.needs ?? []);
  if (absent.length > 0) {
    for (const [program, install] of absent) console.log(`!!! ${step.name} needs ${program}: ${install}`);
    return { ...add([]), [requireAll ? "failed" : "skipped"]: 1 };
  }
  try {
    await step.prepare?.();
  } catch (error) {
    console.log(`\n=== ${step.name}\n!!! not run: ${error.message}`);
    return single(1);
  }
  const [command, ...args] = step.command;
  const report = join(reports, `${step.name.replaceAll(/\W+/g, "-")}.json`);
  if (step.counts === "vitest") args.push("--reporter=default", "--reporter=json", `--outputFile.json=${report}`);
  console.log(`> ${step.name}: ${[command, ...args].join(" ")}`);
  const { status, output } = await watch(command, args, { cwd: root, env });
  console.log(`\n=== ${step.name}\n${output}`);
  if (step.counts === "single") return single(status);
  try {
    const counts = readers[step.counts](step.counts === "vitest" ? report : output);
    return settle(counts, status);
  } catch (error) {
    console.error(`${step.name} left no report: ${error.message}`);
    return single(1);
  }
}

const full = all || words.length > 0;
const isChosen = ({ name, everyday }) =>
  words.length > 0 ? words.some((word) => name.includes(word)) : all || everyday === true;

const table = [];
const lastUse = new Map();

/** Runs a step, once no other uses what it uses, and adds its row to the table. */
async function row(step) {
  const free = lastUse.get(step.uses);
  const run = (async () => {
    await free;
    const started = Date.now();
    const counts = await runStep(step);
    table.push({ step: step.name, ...counts, seconds: Math.round((Date.now() - started) / 1000) });
  })();
  if (step.uses !== undefined) lastUse.set(step.uses, run);
  await run;
}

/** One step after another, until none is left; a list may have several who take from it. */
async function inTurn(steps) {
  for (let step = steps.shift(); step !== undefined; step = steps.shift()) await row(step);
}

const lists = [cargoSteps(full), nodeSteps(), lastSteps()];
const names = lists.flat().map(({ name }) => name);
const unknown = words.find((word) => !names.some((name) => name.includes(word)));
if (unknown !== undefined) stop(`no step has "${unknown}" in its name; there are ${names.join(", ")}`);

await build();
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });
const [ofCargo, ofNode, last] = lists.map((steps) => steps.filter(isChosen));
// Beside cargo's, three others at a time: they wait for servers, browsers and deadlines. Two left two cores partly idle.
const beside = [1, 2, 3].map(() => inTurn(ofNode));
await Promise.all([inTurn(ofCargo).then(() => inTurn(ofNode)), ...beside]);
await inTurn(last);
console.log("");
console.table(table);
const sum = add(table);
if (requireAll) sum.failed += sum.skipped;
console.log(sentence(requireAll ? { ...sum, skipped: 0 } : sum));
process.exitCode = sum.failed === 0 && sum.passed > 0 ? 0 : 1;
