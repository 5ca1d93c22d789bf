// Shared by the suites: options, medians and spreads, and a table as text and as Markdown.
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

/** `--quick`, `--rounds n` and `--json file`, which every suite takes, and a suite's own options. */
export function options(usual, more = {}) {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      json: { type: "string" },
      ...more,
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 1 : usual));
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new Error(`--rounds must be an integer from 1; got ${values.rounds}`);
  return { ...values, rounds };
}

/** In a random order: who always follows the same contender finds what that left in the caches. */
export function shuffled(list) {
  const left = [...list];
  return list.map(() => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
}

/** Measures every contender in each round, each time in another order: the figures of each by its name. */
export async function inRounds(rounds, contenders, measure) {
  const figures = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, contender] of shuffled(Object.entries(contenders)))
      figures[name].push(await measure(contender, name));
  }
  return figures;
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A number for readers: `digits` after the point, and thousands separators. */
export function figure(number, digits = 0) {
  return number.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** How many times `base`: the median of each round's ratio. */
export function ratio(rounds, base) {
  const of = median(rounds.map((one, i) => one / base[i]));
  return figure(of, of < 10 ? 2 : of < 100 ? 1 : 0);
}

/** One figure of each contender over the rounds, the median with its spread and the ratio to one of them. */
export function measured({ title, unit, base, rounds, digits = 0 }) {
  const rows = Object.entries(rounds).map(([name, of]) => [
    name,
    figure(median(of), digits),
    `${figure(Math.min(...of), digits)} to ${figure(Math.max(...of), digits)}`,
    ratio(of, rounds[base]),
  ]);
  return { title, head: ["", unit, "least to most", `× ${base}`], rows };
}

/** A table for a terminal. */
export function text({ title, head, rows }) {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const pad = (cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]));
  return `\n${title}\n${lines.map((line) => line.map(pad).join("  ")).join("\n")}\n`;
}

/** A table for a page. */
export function markdown({ title, head, rows }) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, column) => (column === 0 ? "---" : "---:"));
  return `${title}:\n\n${[line(head), line(rule), ...rows.map(line)].join("\n")}`;
}

/** Prints what was measured, and keeps it where `--json` says. */
export function publish({ json, ...about }, tables, versions = {}) {
  for (const table of tables) process.stdout.write(text(table));
  const { quick, rounds } = about;
  if (json !== undefined)
    writeFileSync(resolve(json), `${JSON.stringify({ rounds, quick, versions, tables }, null, 2)}\n`);
}
