import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { forTests, install, output } from "./installed.ts";
import { ANSWERS, use } from "./program.ts";

const user = forTests(install());

/** Files and links, without folders, which npm may leave empty. */
const under = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
const manifest = () => JSON.parse(readFileSync(join(user.folder, "package.json"), "utf8")) as Record<string, unknown>;

describe("a package that runs no scripts", () => {
  test("works where scripts are forbidden, writes no files elsewhere, and leaves none when it is removed", () => {
    const home = join(user.folder, "home");
    mkdirSync(home);
    const program = user.write(
      "program.mjs",
      `${use('import { defineLimits, MINUTE } from "tidegate";')}console.log(globalThis.answers);`,
    );
    const before = under(user.folder);
    const places = { HOME: home, USERPROFILE: home, TMPDIR: home, TEMP: home, TMP: home };
    const env = { ...process.env, ...places, NODE_COMPILE_CACHE: undefined, NODE_V8_COVERAGE: undefined };
    const run = () => spawnSync(process.execPath, [program], { cwd: user.folder, env, encoding: "utf8" });
    expect(run().stdout.trim()).toBe(ANSWERS);
    expect(under(user.folder)).toEqual(before);

    output("npm", ["uninstall", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "tidegate"], {
      cwd: user.folder,
    });
    expect(manifest()).toEqual({ name: "a-user", version: "1.0.0", private: true });
    const ours = before.filter((path) => /^node_modules[\\/]/.test(path));
    // npm's own list of installed packages may stay; it is empty then.
    const left = under(user.folder).filter((path) => ours.includes(path) && !path.endsWith(".package-lock.json"));
    expect(left).toEqual([]);
    const lock = JSON.parse(readFileSync(join(user.folder, "package-lock.json"), "utf8")) as { packages: object };
    expect(Object.keys(lock.packages)).toEqual([""]);
    expect(run().stderr).toContain("Cannot find package 'tidegate'");
  });
});
