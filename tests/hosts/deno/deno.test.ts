/** Deno: the engine without permissions, and the store on Deno KV. */
import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { addAddon, project } from "../project.ts";
import { inRuntime, replay, type Result } from "../runtimes.ts";

const exec = promisify(execFile);

await inRuntime("deno", async (deno) => {
  const user = project("deno");
  const env = { ...process.env, DENO_NO_UPDATE_CHECK: "1", DENO_DIR: join(user.folder, ".deno") };

  const flags = ["run", "--no-prompt", "--no-remote", "--node-modules-dir=manual"];
  /** A program's output, parsed as JSON. */
  async function run(program: string, permissions: string[], args: string[] = []): Promise<unknown> {
    const { stdout } = await exec(deno, [...flags, ...permissions, program, ...args], {
      cwd: user.folder,
      env,
      maxBuffer: 2 ** 26,
    });
    return JSON.parse(stdout);
  }
  const database = (name: string) => join(user.folder, `${name}.sqlite`);
  const onKv = ["--unstable-kv", `--allow-read=${user.folder}`, `--allow-write=${user.folder}`];

  const memory = (await run("print-memory.js", [])) as Result[];
  describe("in memory, with no permission at all", () => replay(memory));

  describe("shared()", () => {
    const loads = ["--allow-ffi"];
    const result = { granted: [true, true, false], warnings: [] };
    const alone = (reason: RegExp) => {
      const warning = new RegExp(`^TIDEGATE_ADDON .* shared\\(\\) is this thread's own memory: .*${reason.source}`);
      return { ...result, name: "memory", warnings: [expect.stringMatching(warning)] };
    };

    test("without the addon is this thread's memory, with one warning, whatever is permitted", async () => {
      for (const permissions of [[], loads]) {
        expect(await run("shared.js", permissions)).toEqual(
          alone(/Cannot find module [\s\S]* To load it, install the package @tidegate/),
        );
      }
    });

    test("with the addon requires --allow-ffi and no other permission; without it it is memory, and the warning names the permission", async () => {
      addAddon(user);
      expect(await run("shared.js", loads)).toEqual({ ...result, name: "shared" });
      expect(await run("shared.js", ["--allow-read", "--allow-env"])).toEqual(
        alone(/Requires ffi access [\s\S]* To load it, start Deno with --allow-ffi/),
      );
    });
  });

  const kv = (await run("kv.js", onKv, [database("suite")])) as Result[];
  describe("Deno KV", () => replay(kv));

  describe("Deno KV, several processes on one file", () => {
    /** A process that has the database open, and takes its tokens when `go` is called. */
    async function taker(path: string, kind: string): Promise<() => Promise<{ granted: number; left: number }>> {
      const child = spawn(deno, [...flags, ...onKv, "taker.js", path, "60", kind], {
        cwd: user.folder,
        env,
        stdio: ["pipe", "pipe", "inherit"],
      });
      onTestFinished(() => void child.kill());
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      expect((await lines.next()).value).toBe("open");
      return async () => {
        child.stdin.end("\n");
        const { value } = await lines.next();
        return JSON.parse(value ?? "null");
      };
    }

    test.each(["one", "all"])("take exactly the tokens of the limit (%s)", async (kind) => {
      const path = database(`shared-${kind}`);
      // One after the other: Deno fails to open a new database that another process is opening.
      const takers = [await taker(path, kind), await taker(path, kind), await taker(path, kind)];
      const results = await Promise.all(takers.map((go) => go()));
      const limit = kind === "one" ? 100 : 60;
      expect(results.reduce((sum, { granted }) => sum + granted, 0)).toBe(limit);
      // Nearly nothing refills within a thousand hours.
      expect(Math.min(...results.map(({ left }) => left))).toBeLessThan(100 - limit + 1);
    });
  });

  test("a denial and a check write nothing; reported are a corrupt entry, too many states, and a database that was closed", async () => {
    const results = (await run("look.js", onKv, [database("look")])) as Record<string, unknown>;
    expect(results).toMatchObject({ untouched: null, unchanged: true, denied: false });
    expect(results["tooMany"]).toMatch(/^TIDEGATE_INPUT `shards` must be at most 100 .* got 101$/);
    expect(results["tooManyInAll"]).toMatch(/^TIDEGATE_INPUT `shards` must be at most 100 .* got 120$/);
    expect(results["broken"]).toEqual([
      false,
      expect.stringMatching(/^TIDEGATE_STORE deno-kv: read of "two:broken" failed: .*15 bytes/),
    ]);
    const failed = 'deno-kv: take of "two:a" failed: ';
    const [under, after] = results["closed"] as unknown[];
    // Deno may still have read it.
    expect([null, `${failed}Database is closed.`]).toContain(under);
    expect(after).toBe(`${failed}Bad resource ID`);
  });
});
