/** The rules of the house, each held against the tree, and against trees that break it. */
import { describe, expect, test } from "vitest";
import { layers } from "./rules/layers.ts";
import { clocks } from "./rules/clocks.ts";
import { linear } from "./rules/patterns.ts";
import { sizes } from "./rules/sizes.ts";
import { tables } from "./rules/tables.ts";
import { updates } from "./rules/updates.ts";
import { words } from "./rules/words.ts";
import { changed, tree } from "./tree.ts";

const files = tree();

test("there is a tree to look at", () => {
  expect(files.size).toBeGreaterThan(500);
});

describe.each([...sizes, ...layers, ...clocks, ...words, ...tables, ...updates, ...linear])(
  "$name",
  ({ check, broken }) => {
    test("holds", () => expect(check(files)).toEqual([]));

    test.each(broken.map((change, i) => [i, change] as const))("is told where it does not: %i", (_, change) => {
      const [path = ""] = Object.keys(change);
      const told = check(changed(files, change));
      expect(told).not.toEqual([]);
      expect(told.join("\n")).toContain(path);
    });
  },
);
