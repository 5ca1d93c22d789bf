/** The suite and the clock under another test runner: a separate program, with node:test. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { expect, test } from "vitest";
import { remove } from "../support/folders.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("node:test runs the suite, and a store that breaks the contract fails with the test's name and the reason", {
  timeout: 300_000,
}, () => {
  const folder = mkdtempSync(join(root, "node_modules", ".cache-runners-"));
  try {
    writeFileSync(
      join(folder, "suite.ts"),
      `import { describe, test } from "node:test";
import { memory } from "${root}npm/tidegate/src/index.ts";
import { fakeClock, storeSuite } from "${root}npm/tidegate/src/testing/index.ts";
describe("sound", () => storeSuite({ test, describe, create: () => memory() }));
describe("broken", () => storeSuite({ test, describe, create: () => {
  const store = memory();
  return {
    name: "broken",
    sync: true,
    decide: (call, now) => store.decide({ ...call, op: call.op === "check" ? "take" : call.op }, now),
    decideAll: (calls, now) => store.decideAll(calls, now),
    reset: (limit, key) => store.reset(limit, key),
    getValue: (limit, key, now) => store.getValue(limit, key, now),
  };
} }));
`,
    );
    buildSync({
      entryPoints: [join(folder, "suite.ts")],
      outfile: join(folder, "suite.mjs"),
      bundle: true,
      format: "esm",
      platform: "node",
      alias: {
        "#engine-host": join(root, "npm/tidegate/src/engine/host-inline.ts"),
        "#layers": join(root, "npm/tidegate/src/limiter/layers.ts"),
      },
      logLevel: "error",
    });
    let output = "";
    try {
      output = execFileSync(process.execPath, ["--test", "--test-reporter=tap", join(folder, "suite.mjs")], {
        encoding: "utf8",
        env: { ...process.env, NODE_OPTIONS: "" },
      });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    expect(output).toMatch(/^ *ok \d+ - sound$/m);
    expect(output).toMatch(/^ *not ok \d+ - broken$/m);
    expect(output).toMatch(/not ok \d+ - a check writes nothing, on a present key and on an absent one/);
    expect(output).toContain("the same check again (fresh): expected");
    expect(output).toMatch(/^ *ok \d+ - give adds tokens, up to the capacity$/m);
  } finally {
    remove(folder);
  }
});
