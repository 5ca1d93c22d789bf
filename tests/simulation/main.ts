/** Runs tasks from standard input, as JSON, or the complete report. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { adaptive } from "./experiments/adaptive.ts";
import { herd } from "./experiments/herd.ts";
import { breaking } from "./faults/breaker.ts";
import { swinging } from "./faults/clock.ts";
import { queueing } from "./faults/queue.ts";
import { run } from "./fleet/run.ts";
import { summary, withTables } from "./report/markdown.ts";
import { json, plan, report, type Report } from "./report/report.ts";
import type { Result, Task } from "./tasks.ts";

/** The only task that reads a file: the report and the site's tables are made of it. */
const WORK: { readonly [K in Task["task"]]: (task: Task & { task: K }) => Result[K] | Promise<Result[K]> } = {
  fleet: ({ scenario }) => run(scenario),
  herd: ({ seed, limit, clients, back }) => herd(seed, limit, clients, back),
  adaptive: ({ seed, instances, capacity, increase }) => adaptive(seed, instances, capacity, increase),
  breaking: (task) => breaking(task),
  queueing: (task) => queueing(task),
  swinging: (task) => swinging(task),
  plan: () => plan(),
  summary: ({ report }) => summary(JSON.parse(report) as Report),
};

export async function main(args: readonly string[], root: string): Promise<void> {
  if (args.includes("--report")) return writeReport(root);
  if (!args.includes("--tasks")) {
    process.stdout.write("node tests/simulation/run.mjs --report | --tasks < tasks.json\n");
    return;
  }
  const tasks = JSON.parse(readFileSync(0, "utf8")) as Task[];
  for (const task of tasks) {
    const work = WORK[task.task] as (task: Task) => unknown;
    process.stdout.write(`${JSON.stringify(await work(task))}\n`);
  }
}

/** Writes the report, and its tables on the site. */
async function writeReport(root: string): Promise<void> {
  const began = performance.now();
  const progress = (name: string): void => {
    process.stderr.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${name}\n`);
  };
  const all = await report(progress);
  progress("done");
  writeFileSync(join(root, "tests/simulation/report.json"), json(all));
  const page = join(root, "npm/site/reference/figures.md");
  writeFileSync(page, withTables(readFileSync(page, "utf8"), summary(all)));
}
