/** The page on errors has a row for every code of the source, and no other. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../readme/blocks.ts";

const source = join(root, "npm/tidegate/src");
const page = readFileSync(join(root, "npm/site/guide/errors.md"), "utf8");

test("each code of the source has its row, with a remedy", () => {
  const files = readdirSync(source, { recursive: true }).map(String);
  const text = files
    .filter((file) => /\.ts$/.test(file) && !file.includes("generated"))
    .map((file) => readFileSync(join(source, file), "utf8"))
    .join("\n");
  const codes = new Set([...text.matchAll(/\bcode(?:: | = )"(TIDEGATE_\w+)"/g)].map(([, code = ""]) => code));
  expect(codes.size).toBeGreaterThanOrEqual(5);
  const rows = [...page.matchAll(/^\| `(TIDEGATE_\w+)` \|(?:[^|]+\|){2} [^|]{10,} \|$/gm)].map(([, code = ""]) => code);
  expect(rows.sort()).toEqual([...codes].sort());
});

test("each reason of a denial has its row", () => {
  const [, reasons = ""] =
    /export type Reason = ([^;]+);/.exec(readFileSync(join(source, "limit/decision.ts"), "utf8")) ?? [];
  const known = reasons.match(/"[^"]+"/g) ?? [];
  expect(known.length).toBeGreaterThan(0);
  expect([...page.matchAll(/^\| `("[^`]+")` \|/gm)].map(([, reason = ""]) => reason)).toEqual(known);
});
