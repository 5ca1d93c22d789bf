// The site's page of figures and those in the README, from results.json, which `npm run bench -- --keep` writes.
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
  const { cpu, cores, cache, system, node, at } = machine;
  const used = Object.entries(versions).map(([name, version]) => (name === "server" ? version : `${name} ${version}`));
  const where = `${cpu}, ${cores} cores${cache === undefined ? "" : `, ${cache} of cache`}, ${system}, Node.js ${node}, ${at}`;
  const times = rounds === 1 ? "" : `; medians of ${rounds} rounds`;
  return `${where}${times}${used.length === 0 ? "" : `; ${used.join(", ")}`}.`;
}

/** The figures as text: of each suite the results of each CPU. */
export function figures(suites) {
  const there = Object.entries(SUITES).filter(([name]) => suites[name] !== undefined);
  const parts = there.map(([name, title]) => {
    const results = suites[name].map((result) => {
      const tables = name === "process" ? inProcess(result) : result.tables.map(markdown).join("\n\n");
      return `${about(result)}\n\n${tables}`;
    });
    return `### ${title}\n\n${results.join("\n\n")}`;
  });
  return parts.join("\n\n");
}

/** The second cell of a row of a suite, by the table's title and the row's name. */
function cell(suite, title, name) {
  const found = suite.tables.find((table) => table.title === title)?.rows.find(([first]) => first === name)?.[1];
  if (found === undefined) throw new Error(`results.json has no row "${name}" under "${title}"`);
  return found;
}

const on = ({ machine: { cpu, cache, node } }) =>
  `${cpu.replaceAll("(R)", "").replace(" Processor", "")}${cache === undefined ? "" : `, ${cache} of cache`}, Node.js ${node.slice(1)}`;

/** What the README shows: time on each CPU, and a size. */
export function summary({ process: inMemory, redis, sizes }) {
  const row = (what, ours, theirs, where) => `| ${what} | ${ours} | ${theirs} | ${where} |`;
  const decisions = inMemory.map((result) => {
    const million = result.cases.find(({ id }) => id === "million-allow").rows;
    const ns = (contender) =>
      Math.round(million.find(({ id }) => id === contender).figures[0].median).toLocaleString("en-US");
    const what = "CPU per decision in memory, 10⁶ keys";
    return row(what, `${ns("tidegate")} ns`, `express-rate-limit ${ns("express")} ns`, on(result));
  });
  const overRedis = redis.map((result) => {
    const perSecond = (name) => cell(result, "256 callers, 10,000 keys", name);
    const what = "decisions per second on one Redis, 256 callers";
    return row(what, perSecond("tidegate (ioredis)"), `\`GET\` alone ${perSecond("GET (ioredis)")}`, on(result));
  });
  const kB = (name) => `${cell(sizes[0], "A program's bundle", name)} kB`;
  return [
    "| what | Tidegate | beside it | measured on |",
    "|---|---:|---|---|",
    ...decisions,
    ...overRedis,
    row(
      "added to a browser bundle, gzip",
      kB("tidegate: a page, in memory"),
      `@convex-dev/rate-limiter ${kB("@convex-dev/rate-limiter")}`,
      "any machine",
    ),
  ].join("\n");
}

/** A page with a text between two marks. */
function between(page, begin, end, text) {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no ${begin} … ${end}`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}

export const withFigures = (page, suites) => between(page, "<!-- figures -->", "<!-- /figures -->", figures(suites));
export const withSummary = (page, suites) =>
  between(page, "<!-- figures:begin -->", "<!-- figures:end -->", summary(suites));

export function writePages() {
  const suites = JSON.parse(readFileSync(results, "utf8"));
  writeFileSync(PAGE, withFigures(readFileSync(PAGE, "utf8"), suites));
  writeFileSync(README, withSummary(readFileSync(README, "utf8"), suites));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) writePages();
