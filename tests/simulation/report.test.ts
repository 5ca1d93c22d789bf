/** The committed report equals a run, to the byte, and the site's figures quote it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { faulty, MODES, SEED } from "./fleet/cases.ts";
import type { Scenario } from "./fleet/scenario.ts";
import { type Report, TABLES } from "./report/report.ts";
import { expectSound } from "./report/sound.ts";
import { lines, simulate } from "./tasks.ts";

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");
const committed = text("report.json");
const report = JSON.parse(committed) as Report;
const rows = committed.split("\n").map((line) => line.trim().replace(/,$/, ""));

/** Requests of a run that is small enough to repeat here. */
const CHEAP = 3_000;

const fleet = (scenario: Scenario) => ({ task: "fleet", scenario }) as const;

test("one seed has one result, to the byte, and another seed another", async () => {
  const scenarios = MODES.map((mode) => faulty("small", 5, 20, 500, mode));
  const tasks = scenarios.map(fleet);
  const [once, again] = await Promise.all([lines(tasks), lines(tasks)]);
  expect(again).toEqual(once);
  const others = await lines(scenarios.map((scenario) => fleet({ ...scenario, seed: SEED + 1 })));
  for (const [i, line] of others.entries()) expect(line).not.toBe(once[i]);
});

test("the committed report has every scenario, and small ones are reproduced to the byte", async () => {
  const [plan] = await simulate([{ task: "plan" }]);
  const scenarios = TABLES.flatMap((table) => plan?.[table] ?? []);
  const rowOf = (scenario: Scenario): string | undefined =>
    rows.find((row) => row.startsWith(`{"scenario":${JSON.stringify(scenario)},`));
  for (const scenario of scenarios) expect(rowOf(scenario), `run with --report: ${scenario.name}`).toBeDefined();
  expect(rows.filter((row) => row.startsWith('{"scenario"'))).toHaveLength(scenarios.length);
  const cheap = scenarios.filter(({ demand, lasts }) => (demand.perSecond * lasts) / 1000 < CHEAP);
  expect(cheap.length).toBeGreaterThan(10);
  const figures = await lines(cheap.map(fleet));
  for (const [i, scenario] of cheap.entries())
    expect(rowOf(scenario)).toBe(`{"scenario":${JSON.stringify(scenario)},"figures":${figures[i]}}`);
});

test("rows about retrying clients are reproduced to the byte", async () => {
  const some = report.herd.filter(({ limit }) => limit.windows);
  const found = await lines(some.map((row) => ({ task: "herd", seed: SEED, ...row }) as const));
  expect(found).toEqual(some.map((row) => JSON.stringify(row)));
});

test("the committed report has no grant beyond the limit, no late response, and no token from nowhere", () => {
  for (const run of TABLES.flatMap((table) => report[table])) expectSound(run);
});

test("the page of figures quotes the committed report", async () => {
  const [tables = ""] = await simulate([{ task: "summary", report: committed }]);
  expect(text("../../npm/site/reference/figures.md")).toContain(`<!-- simulation -->\n${tables}\n<!-- /simulation -->`);
});
