import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { remove, temporaryFolder } from "../support/folders.ts";

const PROGRAM = fileURLToPath(new URL("limits.mjs", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../../npm/tidegate", import.meta.url));
const CALLS = 3000;

/** What a program of this folder prints. */
const printed = (program: string, ...args: string[]): string => {
  const path = fileURLToPath(new URL(program, import.meta.url));
  return execFileSync(process.execPath, ["--expose-gc", path, PACKAGE, ...args], { encoding: "utf8" });
};

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

test.each([
  ["its store was collected", "defined"],
  ["its store was collected, although the config that was passed with the call is cached", "inline"],
  ["the copy of the package that made it was collected, too", "reloaded"],
])("a limit in memory is freed, with its table, after %s", (_, how) => {
  expect(JSON.parse(printed("released.cjs", how, "20"))).toEqual({
    made: { tables: 20, limits: 20 },
    left: { tables: 0, limits: 0 },
  });
});

test.each([
  ["memory", "index"],
  ["shared", "stores/shared"],
  ["file", "stores/file"],
])("a realm, such as of a test file in Jest, is collected after it has used %s()", (name, entry) => {
  const root = temporaryFolder("realms");
  onTestFinished(() => remove(root));
  expect(printed("collected.mjs", entry, name, ...(name === "file" ? [join(root, "state")] : []))).toBe("0");
});
