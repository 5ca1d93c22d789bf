/** Each line of Node.js from the oldest that `engines` allows: the suite on each store that needs no server, and every entry. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { addAddon, project } from "../project.ts";
import { inRuntime, replay, replayShared, type Result } from "../runtimes.ts";

const exec = promisify(execFile);

for (const version of ["20.19", "22", "24", "26"] as const) {
  await inRuntime(`Node.js ${version}`, async (node) => {
    const user = project("node");
    addAddon(user);
    user.write("package.json", '{ "private": true, "type": "module" }');
    /** What a program prints, as JSON. It may print no warning, such as one of a deprecation. */
    const run = async (program: string, ...args: string[]): Promise<unknown> => {
      const options = { cwd: user.folder, env: { ...process.env, NODE_OPTIONS: "" }, maxBuffer: 2 ** 26 };
      const { stdout, stderr } = await exec(node, ["--pending-deprecation", program, ...args], options);
      if (stderr !== "") throw new Error(stderr);
      return JSON.parse(stdout);
    };
    const memory = (await run("print-memory.js")) as Result[];
    const shared = await run("shared.js");
    const inFile = (await run("file.js", join(user.folder, "folders"))) as Result[];

    describe(`Node.js ${version}`, () => {
      test("is that version; the oldest is the one that `engines` names", async () => {
        user.write("version.js", "console.log(JSON.stringify(process.versions.node));");
        const own = (await run("version.js")) as string;
        expect(own.startsWith(`${version}.`)).toBe(true);
        const manifest = readFileSync(join(user.folder, "node_modules/tidegate/package.json"), "utf8");
        const { engines } = JSON.parse(manifest) as { engines: { node: string } };
        if (version === "20.19") expect([engines.node, own]).toEqual([">=20.19", "20.19.0"]);
      });

      test("loads every entry with `import` and `require`, but those of peers that are not installed", async () => {
        expect(await run("entries.js")).toEqual([
          expect.stringMatching(/^tidegate\/nest: Cannot find module '@nestjs\/common'/),
          expect.stringMatching(/^tidegate\/nest: Cannot find module '@nestjs\/common'/),
          expect.stringMatching(/^tidegate\/react: Cannot find module 'react'/),
          expect.stringMatching(/^tidegate\/react: Cannot find module 'react'/),
        ]);
      });

      test("without WebAssembly, names the entry that needs none", async () => {
        user.write("take.js", 'import { memory } from "tidegate";\nmemory();');
        await expect(exec(node, ["--jitless", "take.js"], { cwd: user.folder })).rejects.toThrow(
          "there is no WebAssembly here: import tidegate/pure instead",
        );
        user.write("pure.js", 'import "tidegate/pure";\nimport "./take.js";');
        await exec(node, ["--jitless", "pure.js"], { cwd: user.folder });
      });

      // Older Node.js reserves gigabytes of addresses for a wasm memory.
      test.runIf(process.platform === "linux")("under `ulimit -v` starts, or names the flag for it", async () => {
        user.write("limited.js", 'import { memory } from "tidegate";\nmemory();');
        const shell = ["-c", 'ulimit -v 4000000 && exec "$0" "$@"', node];
        const limited = (...args: string[]) => exec("sh", [...shell, ...args, "limited.js"], { cwd: user.folder });
        if (version === "20.19" || version === "22") {
          await expect(limited()).rejects.toThrow(
            /no memory for WebAssembly: .* Node\.js with --disable-wasm-trap-handler/,
          );
        } else await limited();
        await limited("--disable-wasm-trap-handler");
      });

      describe("in memory, on the wasm", () => replay(memory));
      replayShared(shared);
      describe("file(), on the addon", () => replay(inFile));

      test("three processes on one folder take exactly its tokens", async () => {
        const place = join(user.folder, "together");
        const granted = await Promise.all([1, 2, 3].map(() => run("file-taker.js", place, "500")));
        expect((granted as number[]).reduce((sum, one) => sum + one, 0)).toBe(1000);
      });
    });
  });
}
