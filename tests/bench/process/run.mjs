// `node tests/bench/process/run.mjs [--quick] [--rounds n] [--case id,…] [--only contender,…] [--json file]`
//
// Contenders take turns, each round in another order, each measurement in its own process; the table has the median of the rounds
// and its spread. Machines are noisy and differ: read the ratios.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { cases } from "./cases.mjs";
import { CONTENDERS } from "./contenders.mjs";
import { missing, ourVersion } from "../installed.mjs";
import { machine } from "../machine.mjs";
import { options, shuffled } from "../tables.mjs";
import { head, summary, table } from "./report.mjs";

const given = options(5, { case: { type: "string" }, only: { type: "string" } });
const { rounds } = given;

const here = fileURLToPath(new URL("./", import.meta.url));
if (missing().length > 0) {
  process.stderr.write(`installing ${missing().join(", ")}\n`);
  const npm = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], {
    cwd: fileURLToPath(new URL("../", import.meta.url)),
    stdio: ["ignore", 2, 2],
  });
  if (npm.status !== 0) throw new Error("`npm ci` in tests/bench failed");
}

function measure(measurement, spec) {
  const argument = JSON.stringify({ measure: measurement, ...spec });
  const child = spawnSync(process.execPath, ["--expose-gc", "measure.mjs", argument], {
    cwd: here,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (child.status !== 0) return { failed: `its process ended with ${child.signal ?? child.status}` };
  return JSON.parse(child.stdout.trim().split("\n").at(-1));
}

function chosen(list, wanted, flag) {
  if (wanted === undefined) return list;
  const ids = wanted.split(",");
  const unknown = ids.find((id) => !list.some((one) => one.id === id || one.id.startsWith(`${id}-`)));
  if (unknown !== undefined)
    throw new Error(`${flag}: no "${unknown}"; there are ${list.map((one) => one.id).join(", ")}`);
  return list.filter((one) => ids.some((id) => one.id === id || (flag === "--case" && one.id.startsWith(`${id}-`))));
}

const about = new Map();
const contenders = chosen(CONTENDERS, given.only, "--only").filter(({ id, title }) => {
  const result = measure("probe", { contender: id });
  if (result.failed !== undefined) process.stdout.write(`left out: ${title}: ${result.failed}\n`);
  else about.set(id, result);
  return result.failed === undefined;
});
if (contenders.length === 0) throw new Error("no contender could be loaded");

const where = machine(ourVersion());
process.stdout.write(head(where, rounds, contenders, about));
if (given.quick)
  process.stdout.write("--quick shows that the bench runs; its figures are of cold code and mean nothing\n");
const report = {
  machine: where,
  rounds,
  quick: given.quick,
  contenders: contenders.map((one) => ({ ...one, ...about.get(one.id) })),
  cases: [],
};
let failures = 0;

for (const one of chosen(cases(given.quick), given.case, "--case")) {
  const taking = contenders.filter(({ id }) => one.contenders === undefined || one.contenders.includes(id));
  if (taking.length === 0) continue;
  const runs = new Map(taking.map(({ id }) => [id, []]));
  for (let round = 0; round < rounds; round++) {
    for (const { id, title } of shuffled(taking)) {
      const result = measure(one.measure, { contender: id, ...one.spec });
      if (result.failed === undefined) runs.get(id).push(result);
      else {
        failures++;
        process.stdout.write(`FAILED: ${title}, ${one.title}: ${result.failed}\n`);
      }
    }
  }
  const rows = taking
    .filter(({ id }) => runs.get(id).length === rounds)
    .map(({ id, title }) => ({ id, title, ...summary(one.measure, runs.get(id)) }));
  process.stdout.write(table(one, rows));
  report.cases.push({ id: one.id, title: one.title, spec: one.spec, rows });
}

// npm changes to the package's folder; INIT_CWD is the user's.
if (given.json !== undefined)
  writeFileSync(resolve(process.env.INIT_CWD ?? "", given.json), `${JSON.stringify(report, null, 2)}\n`);
process.exitCode = failures === 0 ? 0 : 1;
