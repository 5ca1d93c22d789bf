import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { PAGE, README, withFigures, withSummary } from "../bench/figures.mjs";

const suites = JSON.parse(readFileSync(new URL("../bench/results.json", import.meta.url), "utf8"));

test.each([
  ["the page of figures has", PAGE, withFigures],
  ["the README has some of", README, withSummary],
])("%s has the figures of the last kept run", (_, file, write) => {
  const page = readFileSync(file, "utf8");
  expect(page).toBe(write(page, suites));
});
