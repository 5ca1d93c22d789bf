/** Real Bun: the engine, and the suite on the in-memory store. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { project } from "../project.ts";
import { inRuntime, retell } from "../runtimes.ts";

const exec = promisify(execFile);

await inRuntime("bun", async (bun) => {
  const user = project("bun");
  afterAll(() => user.remove());
  const run = async (program: string): Promise<string> => {
    const env = { ...process.env, BUN_INSTALL_CACHE_DIR: user.folder, DO_NOT_TRACK: "1" };
    return (await exec(bun, ["--no-install", program], { cwd: user.folder, env, maxBuffer: 2 ** 26 })).stdout;
  };

  const told = JSON.parse(await run("print-memory.js")) as { name: string; error?: string }[];
  describe("in memory, on the wasm", () => retell(told));

  test("it is Bun that ran it", async () => {
    user.write("version.js", "console.log(Bun.version);");
    expect((await run("version.js")).trim()).toMatch(/^1\.\d+\.\d+$/);
  });
});
