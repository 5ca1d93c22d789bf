import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(`npm/tidegate/src/${path}`, import.meta.url));
const hosts = {
  "#engine-host": source("engine/host-node.ts"),
  "#layers": source("limiter/layers.ts"),
  "#policy-host": source("policies/host-inline.ts"),
};

/** The programs that run inside a database are files of their own language; the build takes them as text too. */
const programs = {
  name: "programs-as-text",
  enforce: "pre" as const,
  load(id: string): string | undefined {
    return /\.(lua|sql)$/.test(id) ? `export default ${JSON.stringify(readFileSync(id, "utf8"))};` : undefined;
  },
};

const setupFiles = "tests/support/restore.ts";

/** `unit` tests the source; every other project tests what the build made, as a user has it. */
export default defineConfig({
  test: {
    // What limiters log about stores that tests break on purpose; the tests of the log bring logs of their own.
    onConsoleLog: (line) =>
      !/^tidegate: .*(answers again|calls (on this key )?are (denied|allowed|decided))/.test(line),
    projects: [
      {
        plugins: [programs],
        resolve: { alias: hosts },
        test: {
          name: "unit",
          setupFiles,
          include: ["npm/*/test/**/*.test.ts"],
          // Files share the modules of a process: importing them for each file was two fifths of the time.
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      ...[
        "console",
        "convex",
        "threads",
        "hosts",
        "platforms",
        "stores",
        "react",
        "examples",
        "readme",
        "site",
        "house",
        "simulation",
        "bench",
        "serve",
      ].map((name) => ({
        plugins: [programs],
        resolve: { alias: hosts },
        test: {
          name,
          setupFiles,
          include: [`tests/${name}/**/*.test.ts`],
          // Of its many short files, importing the modules for each took most of the time. Others would save a second or two.
          isolate: name !== "stores",
          testTimeout: 180_000,
          hookTimeout: 300_000,
        },
      })),
      {
        test: {
          name: "packaging",
          include: ["tests/packaging/*.test.ts"],
          testTimeout: 240_000,
          hookTimeout: 240_000,
          // One folder with the installed tarball serves all files, one after another.
          fileParallelism: false,
        },
      },
      {
        // The tarball in other people's tools: for the full run alone, since installing them takes minutes.
        test: {
          name: "works",
          include: ["tests/packaging/works/*.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 240_000,
        },
      },
    ],
  },
});
