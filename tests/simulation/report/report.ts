/** The report: every run at full size. */
import { adaptive, type Adapted } from "../experiments/adaptive.ts";
import { type Back, herd, type Herd } from "../experiments/herd.ts";
import { bucket, faulty, fleet, hot, MODES, scarce, SEED, uneven } from "../fleet/cases.ts";
import type { Figures } from "../fleet/figures.ts";
import { run } from "../fleet/run.ts";
import type { Mode, Scenario } from "../fleet/scenario.ts";

export interface Run {
  readonly scenario: Scenario;
  readonly figures: Figures;
}

/** Runs, by their table. */
export const TABLES = ["fleet", "hot", "scarce", "uneven", "faulty", "sweep"] as const;
export type Table = (typeof TABLES)[number];
export type Plan = Readonly<Record<Table, readonly Scenario[]>>;
export type Report = Readonly<Record<Table, readonly Run[]>> & {
  readonly adaptive: readonly Adapted[];
  readonly herd: readonly Herd[];
};

/** The scenarios of the report: fleets of up to 1,000 nodes on 100,000 keys. */
export function plan(): Plan {
  const sizes = [1, 10, 100, 1_000];
  // Fewer seconds for more nodes.
  const each = (of: (nodes: number, lasts: number, mode: Mode) => Scenario): Scenario[] =>
    sizes.flatMap((nodes) => MODES.map((mode) => of(nodes, nodes === 1_000 ? 1_000 : 2_000, mode)));
  const some = 100;
  return {
    fleet: each((nodes, lasts, mode) => fleet("fleet", nodes, 100_000, lasts, mode)),
    hot: each((nodes, lasts, mode) => hot("hot", nodes, 0.5, lasts, mode)),
    scarce: each((nodes, _, mode) => scarce("scarce", nodes, 1_000, 4, 1_000, mode)),
    uneven: MODES.map((mode) => uneven("uneven", some, 2_000, mode)),
    faulty: MODES.map((mode) => faulty("faulty", some, 10_000, 10_000, mode)),
    sweep: sweep(some),
  };
}

/** `ahead` and `share` of a lease, for a key with a little less requests than it grants, a little more, and far more. */
function sweep(nodes: number): Scenario[] {
  const settings = [20, 50, 200, 1_000].flatMap((ahead) => [0.1, 0.5, 1].map((share) => ({ ahead, share })));
  return [0.9, 1.25, 4].flatMap((times) =>
    settings.map((lease) => scarce("sweep", nodes, 1_000, times, 1_000, { name: "lease", lease })),
  );
}

/** The rows about retrying clients. */
export function herds(clients: number): Herd[] {
  const ways: Back[] = ["retryAt", { jitter: 0.5 }, "reserve"];
  const limits = [{ ...bucket(200, 200), windows: true }, bucket(200, 200)];
  return limits.flatMap((limit) => ways.map((back) => herd(SEED, limit, clients, back)));
}

/** The rows about adaptive rates. */
export function adapted(): Adapted[] {
  const rows = [2, 10, 100].flatMap((instances) => [0.01, 0.05].map((increase) => ({ instances, increase })));
  return [...rows, { instances: 10, increase: null }].map(({ instances, increase }) =>
    adaptive(SEED, instances, 400, increase),
  );
}

/** Runs everything; `progress` gets the name of each run that begins. */
export async function report(progress: (name: string) => void): Promise<Report> {
  const tables = {} as Record<Table, Run[]>;
  const scenarios = plan();
  for (const table of TABLES) {
    tables[table] = [];
    for (const scenario of scenarios[table]) {
      progress(`${scenario.name}, ${scenario.nodes} nodes, ${scenario.mode.name}`);
      tables[table].push({ scenario, figures: await run(scenario) });
    }
  }
  progress("experiments");
  return { ...tables, adaptive: adapted(), herd: herds(2_000) };
}

/** The file's text: one line per row. */
export function json(report: Report): string {
  const tables = Object.entries(report).map(
    ([name, rows]) =>
      `  ${JSON.stringify(name)}: [\n${rows.map((row) => `    ${JSON.stringify(row)}`).join(",\n")}\n  ]`,
  );
  return `{\n${tables.join(",\n")}\n}\n`;
}
