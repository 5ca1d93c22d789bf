// The table of stores, tests/stores/stores.json, and what derives from it: the tables of the README and the site, the
// servers of the test steps, and the Debian packages that .ci/run installs.
//   node npm/scripts/stores.mjs            writes the tables
//   node npm/scripts/stores.mjs --servers  one line for each server: its program and its Debian package
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * @typedef {{ name: string, entry: string, call: string, default?: boolean, state: string, exact: string, trips: string,
 *   where: string, lost: string, shards: string, server?: { program: string, apt: string, brew: string },
 *   runtimes?: boolean, suite: string, example?: string, page?: string }} Store
 */

/** @type {Store[]} */
export const STORES = JSON.parse(readFileSync(join(root, "tests/stores/stores.json"), "utf8"));

/** The programs that tests of stores start, with what installs them. */
export const SERVERS = STORES.flatMap(({ name, server }) => (server === undefined ? [] : [{ name, ...server }]));

const line = (cells) => `| ${cells.join(" | ")} |`;
const table = (heading, rows) =>
  [line(heading), `|${"---|".repeat(heading.length)}`, ...rows.map((cells) => line(cells))].join("\n");

const SITE = "npm/site/stores";

/** A text as a link to the store's page. `folder` is the way to the pages. */
const linked = (text, { name, page = name }, folder) => `[\`${text}\`](${folder}${page}.md)`;

/** The import, as the README writes it: a function of an entry that has others, or the entry. */
const imported = (store) => {
  const { entry, call, default: isDefault } = store;
  const link = (text) => linked(text, store, `${SITE}/`);
  if (isDefault) return `${link(call)} from \`${entry}\`, the default`;
  return entry === "tidegate/store" ? `${link(call.replace(/\(.*/, "()"))} from \`${entry}\`` : link(entry);
};

const inReadme = () =>
  table(
    ["import", "state", "exact", "round trips per call"],
    STORES.map((store) => [imported(store), store.state, store.exact, store.trips]),
  );

const inGuide = () =>
  table(
    ["where it runs", "store", "a call costs", "what can be lost", "`shards`"],
    STORES.map((store) => {
      const { call, where, trips, lost, shards } = store;
      return [where, linked(call, store, ""), trips, lost, shards];
    }),
  );

const BLOCK = /(<!-- stores:begin -->\n)[\s\S]*?(\n<!-- stores:end -->)/;

/** The files that have a table between the markers, and what makes it. */
export const PAGES = [
  { file: "README.md", make: inReadme },
  { file: `${SITE}/index.md`, make: inGuide },
];

/** A page's text with its table as it should be; `undefined` where the page has no markers. */
export function fresh(text, make) {
  return BLOCK.test(text) ? text.replace(BLOCK, (_, begin, end) => begin + make() + end) : undefined;
}

function main([option]) {
  if (option === "--servers")
    return void console.log(SERVERS.map(({ program, apt }) => `${program} ${apt}`).join("\n"));
  for (const { file, make } of PAGES) {
    const path = join(root, file);
    const text = readFileSync(path, "utf8");
    const wanted = fresh(text, make);
    if (wanted === undefined || wanted === text) continue;
    writeFileSync(path, wanted);
    console.log(`wrote ${file}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
