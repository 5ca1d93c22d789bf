/** Bun: the engine, and the suite on the in-memory store and on the addon's table. */
import { execFile } from "node:child_process";
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { addAddon, project } from "../project.ts";
import { inRuntime, replay, replayShared, type Result } from "../runtimes.ts";

const exec = promisify(execFile);

await inRuntime("bun", async (bun) => {
  const user = project("bun");
  const run = async (program: string): Promise<string> => {
    const env = { ...process.env, BUN_INSTALL_CACHE_DIR: user.folder, DO_NOT_TRACK: "1" };
    return (await exec(bun, ["--no-install", program], { cwd: user.folder, env, maxBuffer: 2 ** 26 })).stdout;
  };

  const results = JSON.parse(await run("print-memory.js")) as Result[];
  describe("in memory, on the wasm", () => replay(results));

  addAddon(user);
  replayShared(JSON.parse(await run("shared.js")));

  test("a request that becomes a WebSocket has no response, and is limited", async () => {
    user.write(
      "sockets.js",
      `import { defineLimits, HOUR } from "tidegate";
      import { rateLimit } from "tidegate/fetch";
      const limits = defineLimits({ api: { kind: "token bucket", rate: 2, period: HOUR } });
      const ends = [];
      const settle = ({ status, aborted }) => void ends.push([status, aborted]);
      const limited = rateLimit(limits, { name: "api", settle }, (request, server) =>
        server.upgrade(request) ? undefined : new Response("hello"));
      const errors = [];
      const error = (found) => { errors.push(String(found)); return new Response("failed", { status: 500 }); };
      const websocket = { open: (socket) => { socket.send("open"); socket.close(); }, message() {} };
      const server = Bun.serve({ port: 0, fetch: limited, error, websocket });
      const join = () => new Promise((done) => {
        const socket = new WebSocket(server.url);
        socket.onmessage = ({ data }) => { socket.close(); done(data); };
        socket.onerror = () => done("refused");
      });
      console.log(JSON.stringify([await join(), await join(), await join(), ends, errors]));
      process.exit();`,
    );
    expect(JSON.parse(await run("sockets.js"))).toEqual([
      "open",
      "open",
      "refused",
      [
        [101, false],
        [101, false],
      ],
      [],
    ]);
  });

  test("a program of bun build --compile finds the addon beside itself, wherever it runs, with the flag that its page names", async () => {
    user.write(
      "compiled.js",
      `import { defineLimits, MINUTE } from "tidegate";
      import { file } from "tidegate/file";
      const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } }, { store: file("limits") });
      console.log(JSON.stringify([1, 2, 3].map(() => limits.limit("send").ok)));`,
    );
    const place = temporaryFolder("bun");
    onTestFinished(() => remove(place));
    const program = join(place, "compiled");
    const flags = ["--compile", "--compile-autoload-package-json", "--outfile", program];
    await exec(bun, ["build", ...flags, "compiled.js"], { cwd: user.folder });
    mkdirSync(join(place, "node_modules"));
    renameSync(join(user.folder, "node_modules/@tidegate"), join(place, "node_modules/@tidegate"));
    const elsewhere = temporaryFolder("bun");
    onTestFinished(() => remove(elsewhere));
    const { stdout, stderr } = await exec(program, { cwd: elsewhere });
    expect(stdout + stderr).toBe("[true,true,false]\n");
  });

  test("runs in Bun", async () => {
    user.write("version.js", "console.log(Bun.version);");
    expect((await run("version.js")).trim()).toMatch(/^1\.\d+\.\d+$/);
  });
});
