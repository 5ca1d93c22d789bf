// The site's page of figures and the three in the README, from results.json, which `npm run bench -- --keep` writes.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { inProcess } from "./process/figures.mjs";
import { markdown } from "./tables.mjs";

export const PAGE = new URL("../../npm/site/reference/figures.md", import.meta.url);
export const README = new URL("../../README.md", import.meta.url);
const results = new URL("results.json", import.meta.url);

/** The headings of the suites, in this order. */
const SUITES = {
  process: "In process",
  file: "A file, shared by processes",
  redis: "Redis on loopback",
  lease: "Leases",
  postgres: "PostgreSQL on loopback",
  http: "In front of a handler",
  serve: "A decision over HTTP",
  sizes: "Sizes",
};

function about({ machine, rounds, versions = {} }) {
  const { cpu, cores, system, node, at } = machine;
  const used = Object.entries(versions).map(([name, version]) => (name === "server" ? version : `${name} ${version}`));
  const where = `${cpu}, ${cores} cores, ${system}, Node.js ${node}, ${at}`;
  const times = rounds === 1 ? "" : `; medians of ${rounds} rounds`;
  return `${where}${times}${used.length === 0 ? "" : `; ${used.join(", ")}`}.`;
}

/** The figures as text. */
export function figures(suites) {
  const there = Object.entries(SUITES).filter(([name]) => suites[name] !== undefined);
  const parts = there.map(([name, title]) => {
    const suite = suites[name];
    const tables = name === "process" ? inProcess(suite) : suite.tables.map(markdown).join("\n\n");
    return `### ${title}\n\n${about(suite)}\n\n${tables}`;
  });
  return parts.join("\n\n");
}

/** A cell of a table of a suite, by the table's title, the row's name and the column. */
function cell(suite, title, name, column = 1) {
  const found = suite.tables.find((table) => table.title === title)?.rows.find(([first]) => first === name)?.[column];
  if (found === undefined) throw new Error(`results.json has no row "${name}" under "${title}"`);
  return found;
}

const on = ({ machine }) =>
  `${machine.cpu.replaceAll("(R)", "").replace(" Processor", "")}, Node.js ${machine.node.slice(1)}`;

/** Three figures, each with the machine that it was measured on. */
export function three({ process: inMemory, redis, sizes }) {
  const million = new Map(inMemory.cases.find(({ id }) => id === "million-allow").rows.map((row) => [row.id, row]));
  const ns = (id) => Math.round(million.get(id).figures[0].median).toLocaleString("en-US");
  const perSecond = (name) => cell(redis, "256 callers, 10,000 keys", name);
  return [
    "| what | Tidegate | beside it | measured on |",
    "|---|---:|---|---|",
    `| CPU per decision in memory, 10⁶ keys | ${ns("tidegate")} ns | express-rate-limit ${ns("express")} ns | ${on(inMemory)} |`,
    `| decisions per second on one Redis, 256 callers | ${perSecond("tidegate (ioredis)")} | \`GET\` alone ${perSecond("GET (ioredis)")} | ${on(redis)} |`,
    `| added to a browser bundle, gzip | ${cell(sizes, "A program's bundle", "tidegate: a page, in memory")} kB | @convex-dev/rate-limiter ${cell(sizes, "A program's bundle", "@convex-dev/rate-limiter")} kB | any machine |`,
  ].join("\n");
}

/** A page with a text between two marks. */
function between(page, begin, end, text) {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no ${begin} … ${end}`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}

export const withFigures = (page, suites) => between(page, "<!-- figures -->", "<!-- /figures -->", figures(suites));
export const withThree = (page, suites) =>
  between(page, "<!-- figures:begin -->", "<!-- figures:end -->", three(suites));

export function writePages() {
  const suites = JSON.parse(readFileSync(results, "utf8"));
  writeFileSync(PAGE, withFigures(readFileSync(PAGE, "utf8"), suites));
  writeFileSync(README, withThree(readFileSync(README, "utf8"), suites));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) writePages();
