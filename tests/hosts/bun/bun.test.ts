/** Bun: the engine, and the suite on the in-memory store and on the addon's table. */
import { execFile } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { here, packageOf } from "../../../npm/tidegate/src/engine/addon.ts";
import { afterAll, describe, expect, test } from "vitest";
import { project } from "../project.ts";
import { inRuntime, replay } from "../runtimes.ts";

const exec = promisify(execFile);

await inRuntime("bun", async (bun) => {
  const user = project("bun");
  afterAll(() => user.remove());
  const run = async (program: string): Promise<string> => {
    const env = { ...process.env, BUN_INSTALL_CACHE_DIR: user.folder, DO_NOT_TRACK: "1" };
    return (await exec(bun, ["--no-install", program], { cwd: user.folder, env, maxBuffer: 2 ** 26 })).stdout;
  };

  const results = JSON.parse(await run("print-memory.js")) as { name: string; error?: string }[];
  describe("in memory, on the wasm", () => replay(results));

  const addon = packageOf(here());
  const built = fileURLToPath(new URL(`../../../npm/${addon.replace("@tidegate/", "")}`, import.meta.url));
  cpSync(built, join(user.folder, "node_modules", addon), { recursive: true });
  cpSync(fileURLToPath(new URL("../../threads/worker.mjs", import.meta.url)), join(user.folder, "threads.mjs"));
  const native = JSON.parse(await run("shared.js")) as {
    results: { name: string; error?: string }[];
    threads: { store: string; one: number; all: number }[];
  };
  describe("shared(), on the native addon", () => replay(native.results));

  test("four threads on one table of the addon take exactly its tokens", () => {
    expect(native.threads.map(({ store }) => store)).toEqual(Array(4).fill("shared"));
    expect(native.threads.reduce((sum, { one }) => sum + one, 0)).toBe(1000);
    expect(native.threads.reduce((sum, { all }) => sum + all, 0)).toBe(500);
  });

  test("runs in Bun", async () => {
    user.write("version.js", "console.log(Bun.version);");
    expect((await run("version.js")).trim()).toMatch(/^1\.\d+\.\d+$/);
  });
});
