/** The simulator's tasks, in a process of its own: its clocks and timers are not the test runner's. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Adapted } from "./experiments/adaptive.ts";
import type { Back, Herd } from "./experiments/herd.ts";
import type { Breaking, Broken } from "./faults/breaker.ts";
import type { Swinging, Swung } from "./faults/clock.ts";
import type { Queued, Queueing } from "./faults/queue.ts";
import type { Figures } from "./fleet/figures.ts";
import type { Bucket, Scenario } from "./fleet/scenario.ts";
import type { Plan } from "./report/report.ts";

export type Task =
  | { readonly task: "fleet"; readonly scenario: Scenario }
  | {
      readonly task: "herd";
      readonly seed: number;
      readonly limit: Bucket;
      readonly clients: number;
      readonly back: Back;
    }
  | {
      readonly task: "adaptive";
      readonly seed: number;
      readonly instances: number;
      readonly capacity: number;
      readonly increase: number | null;
    }
  | ({ readonly task: "breaking" } & Breaking)
  | ({ readonly task: "queueing" } & Queueing)
  | ({ readonly task: "swinging" } & Swinging)
  | { readonly task: "plan" }
  | { readonly task: "summary"; readonly report: string };

export interface Result {
  fleet: Figures;
  herd: Herd;
  adaptive: Adapted;
  breaking: Broken;
  queueing: Queued;
  swinging: Swung;
  plan: Plan;
  summary: string;
}

const RUN = fileURLToPath(new URL("run.mjs", import.meta.url));

/** The line of each task's result, as the simulator wrote it. */
export function lines(tasks: readonly Task[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [RUN, "--tasks"], { maxBuffer: 2 ** 28 }, (error, stdout) => {
      if (error === null) resolve(stdout.trimEnd().split("\n"));
      else reject(error);
    });
    child.stdin?.end(JSON.stringify(tasks));
  });
}

/** The results of tasks of one kind. */
export async function simulate<K extends Task["task"]>(tasks: readonly (Task & { task: K })[]): Promise<Result[K][]> {
  return (await lines(tasks)).map((line) => JSON.parse(line) as Result[K]);
}
