/** The site's table has the rows that were run, as they were run. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { page, PAGE, results } from "../packaging/works/page.mjs";
import { definitionOf } from "../packaging/works/results.ts";
import { TOOLS } from "../packaging/works/tools.ts";

const remedy = "npx vitest run --project works, then node tests/packaging/works/keep.mjs";

test("results.json has each row as it is defined now", () => {
  const run = results().map(({ name, definition }) => [name, definition]);
  expect(run, remedy).toEqual(TOOLS.map((tool) => [tool.name, definitionOf(tool)]));
});

test("the site's page is the one that the results give", () => {
  expect(readFileSync(PAGE, "utf8"), remedy).toBe(page());
});
