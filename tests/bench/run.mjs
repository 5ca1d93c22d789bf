// `npm run bench [-- --suite process,redis] [--quick] [--rounds n] [--json file] [--keep]`
//
// Every table of the site's figures, one suite after another. `--keep` writes results.json, which has the last
// result of each CPU and size of cache, and the pages from it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { writePages } from "./figures.mjs";
import { ourVersion } from "./installed.mjs";
import { machine } from "./machine.mjs";
import { chosen, SUITES, values } from "./options.mjs";

const here = fileURLToPath(new URL("./", import.meta.url));
const kept = join(here, "results.json");
const folder = mkdtempSync(join(tmpdir(), "tidegate-bench-"));
const where = machine(ourVersion());
process.stdout.write(
  `tidegate ${where.tidegate}, ${where.at}, Node ${where.node} (V8 ${where.v8}), ${where.system}, ${where.cores} x ${where.cpu}, cache ${where.cache ?? "unknown"}, ${where.memoryGiB} GiB\n`,
);

/** Whether its server is installed; if not, prints how to install it. */
function isThere(name) {
  const { needs } = SUITES[name];
  const programs = { "redis-server": ["redis-server", "--version"], postgres: ["psql", "--version"] };
  if (needs === undefined) return true;
  const [program, ...args] = programs[needs];
  if (spawnSync(program, args, { stdio: "ignore" }).status === 0) return true;
  process.stdout.write(`\n!!! ${name} is left out: ${needs} is not installed\n`);
  return false;
}

/** The kept results that stay: those of other CPUs, or with another cache, for what depends on the CPU. */
function others(name, results) {
  const isOther = ({ machine: { cpu, cache } }) => cpu !== where.cpu || cache !== where.cache;
  return SUITES[name].anywhere ? [] : results.filter(isOther);
}

const suites = {};
let failed = 0;
for (const name of chosen.filter(isThere)) {
  const json = join(folder, `${name}.json`);
  const rounds = values.rounds === undefined ? [] : ["--rounds", values.rounds];
  const args = [...(values.quick ? ["--quick"] : []), ...rounds, "--json", json];
  process.stdout.write(`\n== ${name} ==\n`);
  const { status } = spawnSync(process.execPath, [join(here, name, "run.mjs"), ...args], { stdio: "inherit" });
  if (status !== 0) {
    process.stdout.write(`\n!!! ${name} failed\n`);
    failed++;
  } else suites[name] = { machine: where, ...JSON.parse(readFileSync(json, "utf8")) };
}
rmSync(folder, { recursive: true, force: true });

const write = (path, of) => writeFileSync(path, `${JSON.stringify(of, null, 2)}\n`);
// npm changes to this folder, and INIT_CWD is where the user was.
if (values.json !== undefined) write(resolve(process.env.INIT_CWD ?? "", values.json), suites);
if (values.keep) {
  const before = JSON.parse(readFileSync(kept, "utf8"));
  const after = Object.entries(suites).map(([name, result]) => [name, [...others(name, before[name] ?? []), result]]);
  write(kept, { ...before, ...Object.fromEntries(after) });
  writePages();
}
process.exitCode = failed === 0 ? 0 : 1;
