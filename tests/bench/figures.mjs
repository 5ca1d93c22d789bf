// The README's figures, from what `npm run bench -- --keep` left in results.json.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { inProcess } from "./process/figures.mjs";
import { markdown } from "./tables.mjs";

const readme = new URL("../../README.md", import.meta.url);
const results = new URL("results.json", import.meta.url);
const MARKS = ["<!-- figures -->", "<!-- /figures -->"];

/** The headings of the suites, in this order. */
const SUITES = {
  process: "In process",
  file: "A file, shared by processes",
  redis: "Redis on loopback",
  lease: "Leases",
  postgres: "PostgreSQL on loopback",
  http: "In front of a handler",
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

/** The README with the figures between its marks. */
export function withFigures(text, suites) {
  const [from, to] = MARKS.map((mark) => text.indexOf(mark));
  if (from < 0 || to < from) throw new Error(`README.md has no ${MARKS.join(" … ")}`);
  return `${text.slice(0, from + MARKS[0].length)}\n${figures(suites)}\n${text.slice(to)}`;
}

export function writeReadme() {
  const suites = JSON.parse(readFileSync(results, "utf8"));
  writeFileSync(readme, withFigures(readFileSync(readme, "utf8"), suites));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) writeReadme();
