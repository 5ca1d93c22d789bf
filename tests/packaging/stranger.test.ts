/** Other projects' tools: another compiler, other type libraries, other test runners. */
import { existsSync, readFileSync, symlinkSync, cpSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { typeErrors } from "./checkers.ts";
import { entries, forTests, install, output, root } from "./installed.ts";

const here = join(root, "tests/packaging/stranger");
const theirs = join(here, "node_modules");
const ours = join(root, "node_modules");
if (!existsSync(theirs)) throw new Error("npm install --ignore-scripts --prefix tests/packaging/stranger");

const user = forTests(install());
const link = (from: string, name: string) =>
  symlinkSync(join(from, name), join(user.folder, "node_modules", name), "junction");
for (const name of ["jest", "@jest", "@types", "undici-types"]) link(theirs, name);
link(ours, "vitest");
const all = entries(user.manifest());

const COMPILERS: Readonly<Record<string, string>> = {
  "5.4, the least": join(theirs, "typescript-5.4"),
  "5.9": join(theirs, "typescript-5.9"),
  "6.0": join(ours, "typescript"),
  "7.0, the newest": join(ours, "typescript-7"),
};

/** Entries whose declarations use web types, such as `AbortSignal` and `Request`. */
const NOT_BARE = ["file", "fetch", "next", "node", "budget", "client", "client/node"].map((name) => `tidegate/${name}`);
/** Entries with the types of a peer; frameworks.test.ts compiles them where that is installed. */
const PEERS = ["express", "fastify", "hono", "koa", "nest"].map((name) => `tidegate/${name}`);
/** The entries that compile with Node.js types (all), with web types, and with neither. */
const LIBRARIES: Readonly<Record<string, { lib: string[]; types: string[]; but: readonly string[] }>> = {
  "Node.js": { lib: ["es2022"], types: ["node"], but: [] },
  "a page": { lib: ["es2022", "dom"], types: [], but: ["tidegate/client/node", "tidegate/node"] },
  "the language alone": { lib: ["es2022"], types: [], but: NOT_BARE },
};
describe.each(Object.keys(COMPILERS))("TypeScript %s", (version) => {
  test.each(Object.keys(LIBRARIES))("every declaration compiles strictly with the types of %s", (library) => {
    const { lib, types, but } = LIBRARIES[library] as (typeof LIBRARIES)[string];
    const chosen = all.filter((entry) => !but.includes(entry) && !PEERS.includes(entry));
    user.write("all.mts", chosen.map((entry, i) => `export * as e${i} from "${entry}";\n`).join(""));
    // types.test.ts tests other ways to resolve modules.
    const options = { module: "nodenext", moduleResolution: "nodenext", lib, types };
    expect(typeErrors(user.folder, ["all.mts"], options, COMPILERS[version])).toBe("");
  });
});

describe("fake timers move the time of limits, and nothing hangs", () => {
  beforeAll(() => cpSync(join(here, "timers"), user.folder, { recursive: true }));
  const run = (args: string[]) =>
    output(process.execPath, args, { cwd: user.folder, env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" } });

  test("Jest's, with ES modules", () => {
    const config = JSON.stringify({ rootDir: user.folder, testMatch: ["**/jest.test.mjs"], transform: {} });
    const jest = join(theirs, "jest/bin/jest.js");
    const report = join(user.folder, "report.json");
    run(["--experimental-vm-modules", jest, "--config", config, "--json", "--outputFile", report]);
    expect(JSON.parse(readFileSync(report, "utf8"))).toMatchObject({ success: true, numPassedTests: 6 });
  });

  test("Vitest's", () => {
    const report = join(user.folder, "report.json");
    const vitest = join(ours, "vitest/vitest.mjs");
    run([vitest, "run", "--root", user.folder, "--reporter=json", `--outputFile=${report}`, "vitest.test.mjs"]);
    expect(JSON.parse(readFileSync(report, "utf8"))).toMatchObject({ success: true, numPassedTests: 6 });
  });
});
