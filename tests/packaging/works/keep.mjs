// Keeps what the last `npx vitest run --project works` found in results.json, and writes the site's page from it. Rows that
// did not run stay as they are.
import { readFileSync, writeFileSync } from "node:fs";
import { page, PAGE, RESULTS, results } from "./page.mjs";

const lastRun = new URL("../../../node_modules/.cache/tidegate/works.json", import.meta.url);
const { order, passed } = JSON.parse(readFileSync(lastRun, "utf8"));
const kept = new Map([...results(), ...passed].map((row) => [row.name, row]));
const rows = order.flatMap((name) => kept.get(name) ?? []);
writeFileSync(RESULTS, `${JSON.stringify(rows, null, 2)}\n`);
writeFileSync(PAGE, page(rows));
console.log(`${passed.length} rows of the last run kept; ${rows.length} of ${order.length} rows have a result`);
