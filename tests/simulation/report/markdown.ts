/** The tables of the site's figures, made of the report. */
import type { Herd } from "../experiments/herd.ts";
import type { Report, Run } from "./report.ts";

type Column = readonly [name: string, cell: (run: Run) => string];

const whole = (number: number): string => Math.round(number).toLocaleString("en-US");
const percent = (fraction: number): string => `${(fraction * 100).toFixed(1)} %`;
const tokens = (count: number): string => (count === 0 ? "0" : count.toFixed(1));

const DEMANDS: Readonly<Record<string, string>> = {
  fleet: "100,000 keys",
  hot: "one key, half of what it grants",
  scarce: "one key, four times what it grants",
};
const DEMAND: Column = ["demand", ({ scenario }) => DEMANDS[scenario.name] ?? scenario.name];
const NODES: Column = ["nodes", ({ scenario }) => whole(scenario.nodes)];
const MODE: Column = ["mode", ({ scenario }) => scenario.mode.name];
const UTILIZATION: Column = ["utilization", ({ figures }) => percent(figures.utilization)];
const STEPS: Column = ["steps/s", ({ figures }) => whole(figures.stepsPerSecond)];
const PER_CALL: Column = ["steps a call", ({ figures }) => figures.stepsPerCall.toFixed(2)];
const P50: Column = ["p50, ms", ({ figures }) => figures.waitP50.toFixed(2)];
const P99: Column = ["p99, ms", ({ figures }) => figures.waitP99.toFixed(2)];
const JAIN: Column = ["Jain", ({ figures }) => figures.jain.toFixed(3)];
const OVER: Column = ["over", ({ figures }) => tokens(figures.overAdmitted)];
const UNANSWERED: Column = ["unanswered", ({ figures }) => percent(figures.unanswered)];
const STRANDED: Column = ["stranded", ({ figures }) => percent(figures.stranded)];
const LARGE: Column = ["it got", ({ figures }) => percent(figures.largeShare)];
const SMALL: Column = ["others got", ({ figures }) => percent(figures.smallShare)];

/** Columns of text; all others are numbers. */
const WORDS = new Set(["demand", "mode", "limit", "a denied client comes back"]);

function lines(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((name) => (WORDS.has(name) ? "---" : "---:"));
  return [head, rule, ...rows].map(row).join("\n");
}

const table = (columns: readonly Column[], runs: readonly Run[]): string =>
  lines(
    columns.map(([name]) => name),
    runs.map((run) => columns.map(([, cell]) => cell(run))),
  );

/** The page's text between its marks. */
export function summary(report: Report): string {
  const largest = (runs: readonly Run[]): Run[] => runs.filter(({ scenario }) => scenario.nodes === 1_000);
  const sizes = [report.fleet, report.hot, report.scarce].flatMap(largest);
  return [
    table([DEMAND, NODES, MODE, UTILIZATION, STEPS, PER_CALL, P50, P99, JAIN], sizes),
    extrapolation(largest(report.fleet)),
    "100 nodes when everything goes wrong, and when one of them has half of the demand:",
    wrongAndUneven(report),
    "2,000 clients arrive within a second, for 200 tokens a second:",
    herds(report.herd),
  ].join("\n\n");
}

function extrapolation(runs: readonly Run[]): string {
  const steps = runs.map(({ scenario, figures }) => {
    const calls = (scenario.demand.perSecond / scenario.nodes) * 10_000;
    return `${((figures.stepsPerCall * calls) / 1e6).toFixed(1)} million (${scenario.mode.name})`;
  });
  return (
    "10,000 nodes are extrapolated, not simulated: a million calls a second, at the steps a call of 1,000 nodes, are " +
    `${steps.join(", ")} steps a second.`
  );
}

/** Both have a row for each mode. */
function wrongAndUneven(report: Report): string {
  const wrong = [MODE, OVER, UTILIZATION, UNANSWERED, STRANDED];
  const uneven = [LARGE, SMALL];
  const rows = report.faulty.map((run, i) => [
    ...wrong.map(([, cell]) => cell(run)),
    ...uneven.map(([, cell]) => cell(report.uneven[i] as Run)),
  ]);
  return lines(
    [...wrong, ...uneven].map(([name]) => name),
    rows,
  );
}

function herds(rows: readonly Herd[]): string {
  const head = [
    "limit",
    "a denied client comes back",
    "retries in 1 ms",
    "in 100 ms",
    "calls a token",
    "all served, s",
  ];
  return lines(
    head,
    rows.map((row) => [
      row.limit.windows ? "fixed window" : "token bucket",
      row.back === "retryAt"
        ? "at `retryAt`"
        : row.back === "reserve"
          ? "never: it reserved"
          : `with \`jitter\`, fraction ${row.back.jitter}`,
      whole(row.peakPerMs),
      whole(row.peakPer100Ms),
      row.callsPerToken.toFixed(1),
      row.doneAfter.toFixed(1),
    ]),
  );
}

const BEGIN = "<!-- simulation -->\n";
const END = "<!-- /simulation -->";

/** The page with these tables between its marks. */
export function withTables(page: string, tables: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the page of figures must have ${BEGIN.trim()} before ${END}`);
  return `${page.slice(0, begin)}${BEGIN}${tables}\n${page.slice(end)}`;
}
