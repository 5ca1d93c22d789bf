import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { remove, temporaryFolder } from "../support/folders.ts";

const PROGRAM = fileURLToPath(new URL("limits.mjs", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../../npm/tidegate", import.meta.url));
const CALLS = 3000;

test("the addon frees every limit that was collected, on shared() and on file()", () => {
  const root = temporaryFolder("limits");
  onTestFinished(() => remove(root));
  const run = ["--expose-gc", PROGRAM, PACKAGE, join(root, "state"), String(CALLS)];
  const { most, left } = JSON.parse(execFileSync(process.execPath, run, { encoding: "utf8" })) as Record<
    "most" | "left",
    number[]
  >;
  // Callbacks do not run during the loop: each call's limit is kept.
  for (const kept of most) expect(kept).toBeGreaterThanOrEqual(CALLS);
  for (const kept of left) expect(kept).toBeLessThanOrEqual(20);
});

// Jest takes the properties of objects that are global from them at the end of a test file, or warns where one is read.
test("a table is freed after its store was collected, without reading a property of the engine", () => {
  const program = fileURLToPath(new URL("tables.mjs", import.meta.url));
  const printed = execFileSync(process.execPath, ["--expose-gc", program, PACKAGE, "100"], { encoding: "utf8" });
  expect(JSON.parse(printed)).toEqual({ most: 100, left: 0, reads: 0 });
});
