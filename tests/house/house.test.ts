/** The house rules, each checked on the tree and on trees that break it. */
import { describe, expect, test } from "vitest";
import { layers } from "./rules/layers.ts";
import { clocks } from "./rules/clocks.ts";
import { contributing } from "./rules/contributing.ts";
import { mutants } from "./rules/mutants.ts";
import { numbers } from "./rules/numbers.ts";
import { linear } from "./rules/patterns.ts";
import { retries } from "./rules/retries.ts";
import { sizes } from "./rules/sizes.ts";
import { tables } from "./rules/tables.ts";
import { updates } from "./rules/updates.ts";
import { wording } from "./rules/wording.ts";
import { words } from "./rules/words.ts";
import { bytes, changed, tree } from "./tree.ts";

const files = tree();

test("the tree has the files that the rules read", () => {
  expect(files.size).toBeGreaterThan(500);
});

test("no file of a test's run is in git: each has at most 1 MB, and a path that Windows has too", () => {
  const odd = [...bytes()].filter(([path, size]) => size > 1_000_000 || /[\\:*?"<>|]/.test(path));
  expect(odd).toEqual([]);
});

describe.each([
  ...sizes,
  ...layers,
  ...clocks,
  ...words,
  ...wording,
  ...tables,
  ...contributing,
  ...updates,
  ...numbers,
  ...linear,
  ...mutants,
  ...retries,
])("$name", ({ check, broken }) => {
  test("holds", () => expect(check(files)).toEqual([]));

  test.each(broken.map((change, i) => [i, change] as const))("reports a tree that breaks it: %i", (_, change) => {
    const [path = ""] = Object.keys(change);
    const reports = check(changed(files, change));
    expect(reports).not.toEqual([]);
    expect(reports.join("\n")).toContain(path);
  });
});
