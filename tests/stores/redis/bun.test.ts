/** Bun's own client, in Bun. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { inRuntime, replay } from "../../hosts/runtimes.ts";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { vectors } from "../vectors.ts";
import { RedisServer } from "./server.ts";

await inRuntime("bun", async (bun) => {
  const server = await RedisServer.start();
  const folder = temporaryFolder("bun-redis");
  afterAll(async () => {
    await server.stop();
    remove(folder);
  });
  const file = join(folder, "vectors.json");
  writeFileSync(file, JSON.stringify(vectors));
  const program = fileURLToPath(new URL("./bun.mjs", import.meta.url));
  const env = { ...process.env, DO_NOT_TRACK: "1" };
  const args = ["--no-install", program, `${server.port}`, file];
  const { stdout } = await promisify(execFile)(bun, args, { env, maxBuffer: 2 ** 26 });
  const { suite, ...rest } = JSON.parse(stdout);

  test("the first calls are answered by the server, and those after SCRIPT FLUSH", () => {
    expect(rest).toEqual({ bun: expect.stringMatching(/^1\./), granted: 10, afterFlush: true });
  });
  replay(suite);
});
