import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { withFigures } from "../bench/figures.mjs";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

test("the README's figures are those of the last run that was kept", () => {
  const readme = read("../../README.md");
  expect(readme).toBe(withFigures(readme, JSON.parse(read("../bench/results.json"))));
});
