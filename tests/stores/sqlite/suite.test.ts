/** The contract of a store on SQLite, through every client, each in its runtime; and two processes on one file. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { sqlite } from "tidegate/sqlite";
import { inRuntime, replay } from "../../hosts/runtimes.ts";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { testExample } from "../example.ts";
import { grantedTo, OPERATIONS } from "../takers.ts";
import { few, vectors } from "../vectors.ts";
import { clients } from "./clients.mjs";

const run = promisify(execFile);
const env = { ...process.env, NODE_NO_WARNINGS: "1", DO_NOT_TRACK: "1" };
const folder = temporaryFolder("sqlite");
afterAll(() => remove(folder));

/** The client of each runtime. D1 runs the suite in tests/hosts/workerd. */
const CLIENTS = {
  node22: ["node:sqlite"],
  bun: ["bun:sqlite"],
  "better-sqlite3": ["better-sqlite3"],
  libsql: ["@libsql/client"],
  turso: ["@tursodatabase/database"],
} as const;

for (const [runtime, [client]] of Object.entries(CLIENTS)) {
  await inRuntime(runtime as keyof typeof CLIENTS, async (program) => {
    const path = join(folder, `${runtime}.db`);
    const suite = fileURLToPath(new URL("suite.mjs", import.meta.url));
    // One client has all: the others carry the same numbers in ways of their own.
    const histories = join(folder, `${runtime}.json`);
    writeFileSync(histories, JSON.stringify(runtime === "node22" ? vectors : few));
    const { stdout } = await run(program, [suite, client, path, histories], { env, maxBuffer: 2 ** 26 });
    describe(client, () => replay(JSON.parse(stdout)));

    // libSQL loses writes of two processes on one local file: plain `UPDATE`s of a counter, too. Turso's is of one process.
    if (client === "@libsql/client" || client === "@tursodatabase/database") return;
    describe(`${client}, two processes on one file`, () => {
      test.each(OPERATIONS)("grant exactly the capacity (%s)", async (operation, capacity) => {
        const shared = join(folder, `${runtime}-${operation}.db`);
        const taker = (calls: string) => ["sqlite", client, shared, "tidegate", calls, operation];
        // Two processes that switch a new file to WAL at once do not wait for each other: SQLITE_BUSY, whatever the timeout.
        await grantedTo([taker("0")], program);
        expect(await grantedTo([taker("240"), taker("240")], program)).toBe(capacity);
      });
    });
  });
}

for (const [runtime, name] of [
  ["libsql", "@libsql/client"],
  ["turso", "@tursodatabase/database"],
] as const) {
  await inRuntime(runtime, () => {
    test(`${name}: two stores on one connection grant exactly the capacity`, async () => {
      const { client, close } = await clients[name](join(folder, `${runtime}-shared.db`));
      const stores = [sqlite(client), sqlite(client)];
      const config = { kind: "token bucket", rate: 5, period: HOUR } as const;
      const limits = stores.map((store) => defineLimits({ one: config }, { store, timeout: 60_000 }));
      await Promise.all(limits.map((limiter) => limiter.check("one")));
      const calls = Array.from({ length: 20 }, () => limits.map((limiter) => limiter.limit("one")));
      const decisions = await Promise.all(calls.flat());
      expect(decisions.filter(({ ok }) => ok).length).toBe(5);
      await close();
    });

    test(`${name}: a table whose ids are no key is not a store's, and the error has the remedy`, async () => {
      const { client, close } = await clients[name](join(folder, `${runtime}-keyless.db`));
      await sqlite(client).connecting;
      const create = "CREATE TABLE keyless (id TEXT, state TEXT, drop_at INTEGER)";
      await ("execute" in client ? client.execute({ sql: create, args: [] }) : client.run(create));
      const store = sqlite(client, { table: "keyless" });
      const limiter = defineLimits({ one: { kind: "token bucket", rate: 5, period: HOUR } }, { store, log: false });
      expect(String((await limiter.limit("one")).cause)).toContain("give the store one of its own");
      await close();
    });
  });
}

await inRuntime("libsql", async () => {
  test("libSQL with one connection, as in memory: a call during a transaction of yours is repeated until that ends", async () => {
    const { client, close } = await clients["@libsql/client"](":memory:");
    let refused = 0;
    const store = sqlite({
      execute: (statement) =>
        client.execute(statement).catch((error: unknown) => {
          refused++;
          throw error;
        }),
    });
    const limits = defineLimits({ one: { kind: "token bucket", rate: 3, period: HOUR } }, { store, timeout: 60_000 });
    await limits.limit("one");
    const transaction = await client.transaction("write");
    refused = 0;
    const call = limits.limit("one");
    await expect.poll(() => refused, { timeout: 60_000 }).toBeGreaterThan(0);
    await transaction.commit();
    expect(await call).toMatchObject({ ok: true, remaining: 1 });
    await close();
  });
});

await inRuntime("node22", (node) => {
  test("node:sqlite that was closed and opened again: the calls meanwhile fail, and those after it go on", async () => {
    const path = join(folder, "reopened.db");
    const program = `
      import { DatabaseSync } from "node:sqlite";
      import { defineLimits, HOUR } from "tidegate";
      import { sqlite } from "tidegate/sqlite";
      const client = new DatabaseSync(${JSON.stringify(path)});
      const store = sqlite(client);
      const limits = defineLimits({ one: { kind: "token bucket", rate: 3, period: HOUR } }, { store, log: false, timeout: 60_000 });
      const take = async () => console.log((await limits.limit("one")).ok);
      await take();
      client.close();
      await take();
      client.open();
      for (let i = 0; i < 3; i++) await take();`;
    const { stdout } = await run(node, ["--input-type=module", "--eval", program], { env });
    expect(stdout).toBe("true\nfalse\ntrue\ntrue\nfalse\n");
  });

  testExample("sqlite", () => ({ ...env, DATABASE: join(folder, "example.db") }), node);
});
