/** Each row of the page of promises names an existing test. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../readme/blocks.ts";

const path = join(root, "npm/site/reference/promises.md");
const page = readFileSync(path, "utf8");
const promises = [...page.matchAll(/^\| [^|]+ \| `([^`]+)` in \[[^\]]+\]\(([^)]+)\) \|$/gm)];

test("every promise names a test", () => {
  const [table = ""] = /^\| promise \|[\s\S]*?\n\n/m.exec(page) ?? [];
  expect(table.match(/^\| /gm)?.length).toBe(promises.length + 1); // and the table's head
  expect(promises.length).toBeGreaterThan(40);
});

test.each(promises.map(([, name = "", file = ""]) => [name, file]))("%s in %s", (name, file) => {
  const text = readFileSync(join(dirname(path), file), "utf8");
  const literal = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const quote = "[\"'`]";
  // In TypeScript it ends the title of a test, of `test.each`, or of a `describe`.
  const declared = file.endsWith(".rs")
    ? `fn ${literal}\\(`
    : `(test|describe)(\\.each\\([^)]*\\))?\\(\\s*${quote}.*${literal}${quote}`;
  expect(text).toMatch(new RegExp(declared));
});
