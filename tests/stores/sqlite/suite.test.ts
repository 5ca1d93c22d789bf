/** The contract of a store on SQLite, through every client, each in its runtime; and two processes on one file. */
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { inRuntime, replay } from "../../hosts/runtimes.ts";
import { remove } from "../../support/folders.ts";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "tidegate-sqlite-"));
afterAll(() => remove(folder));

async function output(runtime: string, program: string, ...args: string[]): Promise<string> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const env = { ...process.env, NODE_NO_WARNINGS: "1", DO_NOT_TRACK: "1" };
  return (await run(runtime, [file, ...args], { env, maxBuffer: 2 ** 26 })).stdout;
}

/** The client of each runtime. D1 runs the suite in tests/hosts/workerd. */
const CLIENTS = {
  node22: ["node:sqlite"],
  bun: ["bun:sqlite"],
  "better-sqlite3": ["better-sqlite3"],
  libsql: ["@libsql/client"],
} as const;

for (const [runtime, [client]] of Object.entries(CLIENTS)) {
  await inRuntime(runtime as keyof typeof CLIENTS, async (program) => {
    const path = join(folder, `${runtime}.db`);
    const results = JSON.parse(await output(program, "suite.mjs", client, path)) as { name: string; error?: string }[];
    describe(client, () => replay(results));

    // libSQL loses writes of two processes on one local file: plain `UPDATE`s of a counter, too.
    if (client === "@libsql/client") return;
    describe(`${client}, two processes on one file`, () => {
      test.each([
        ["one", 300],
        ["all", 200],
      ])("grant exactly the capacity (%s)", async (kind, capacity) => {
        const shared = join(folder, `${runtime}-${kind}.db`);
        // Two processes that switch a new file to WAL at once do not wait for each other: SQLITE_BUSY, whatever the timeout.
        await output(program, "taker.mjs", client, shared, "0", kind);
        const takers = [1, 2].map(() => output(program, "taker.mjs", client, shared, "240", kind));
        const granted = (await Promise.all(takers)).map(Number);
        expect(granted.reduce((sum, one) => sum + one, 0)).toBe(capacity);
      });
    });
  });
}

await inRuntime("node22", (node) => {
  test("examples/sqlite: two logins are allowed, the third is not", async () => {
    const env = { ...process.env, NODE_NO_WARNINGS: "1", DATABASE: join(folder, "example.db") };
    const { stdout } = await run(node, [fileURLToPath(new URL("../../../examples/sqlite/main.mjs", import.meta.url))], {
      env,
    });
    expect(stdout).toBe("first allowed, 1 left\nsecond allowed, 0 left\nthird try again later\n");
  });
});
