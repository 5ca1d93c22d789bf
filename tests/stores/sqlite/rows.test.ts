/** What is stored, and what a locked file does to calls. On better-sqlite3. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { sqlite, type SyncSqlite } from "tidegate/sqlite";
import { inRuntime } from "../../hosts/runtimes.ts";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { limits, testTable } from "../table.ts";
import { clients } from "./clients.mjs";

interface Client extends SyncSqlite {
  exec(sql: string): void;
  prepare(sql: string): ReturnType<SyncSqlite["prepare"]> & { all(...values: unknown[]): unknown[] };
}

const folder = temporaryFolder("sqlite");
afterAll(() => remove(folder));

await inRuntime("better-sqlite3", async () => {
  const { client, close } = (await clients["better-sqlite3"](join(folder, "rows.db"))) as unknown as {
    client: Client;
    close(): void;
  };
  afterAll(close);

  testTable({
    store: (table) => sqlite(client, { table }),
    async rows(table) {
      const found = client.prepare(`SELECT id, state, drop_at FROM ${table} ORDER BY id`).all() as object[];
      return found.map((row) => Object.values(row));
    },
    run: async (sql) => client.exec(sql),
    reasons: ["no such column: id", "table two has no column named drop_at"],
  });

  test("a client whose rows are arrays decides as any other (`returnArrays` of node:sqlite)", async () => {
    const arrays: SyncSqlite = {
      prepare(sql) {
        const statement = client.prepare(sql) as ReturnType<Client["prepare"]> & { raw(): never };
        return sql.startsWith("SELECT") ? statement.raw() : statement;
      },
    };
    const limiter = defineLimits(limits, { store: sqlite(arrays, { table: "r" }), now: () => 5000, timeout: 60_000 });
    for (const ok of [true, true, false]) expect(await limiter.limit("login", { key: "k" })).toMatchObject({ ok });
  });

  test("a client whose `run` returns nothing decides as any other (Bun before 1.1.14)", async () => {
    const silent: SyncSqlite = {
      prepare(sql) {
        const statement = client.prepare(sql);
        return { all: statement.all.bind(statement), run: (...values) => void statement.run(...values) };
      },
    };
    const limiter = defineLimits(limits, { store: sqlite(silent, { table: "n" }), now: () => 5000, timeout: 60_000 });
    for (const ok of [true, true, false]) expect(await limiter.limit("login", { key: "k" })).toMatchObject({ ok });
  });

  test.each(["x'01'", "12", "''"])("a state that is %s fails the calls on its key, until reset", async (state) => {
    const limiter = defineLimits(limits, { store: sqlite(client, { table: "odd" }), timeout: 60_000, log: false });
    await limiter.limit("login", { key: "k" });
    client.exec(`UPDATE odd SET state = ${state}`);
    const { cause } = await limiter.limit("login", { key: "k" });
    expect(cause).toMatchObject({ scope: "key" });
    await limiter.reset("login", { key: "k" });
    expect(await limiter.limit("login", { key: "k" })).toMatchObject({ ok: true, remaining: 1 });
  });

  test("keys of characters that a database in UTF-16 replaces stay apart", async () => {
    const wide = (await clients["better-sqlite3"](":memory:")) as unknown as { client: Client; close(): void };
    wide.client.exec("PRAGMA encoding = 'UTF-16'");
    const limiter = defineLimits(limits, { store: sqlite(wide.client), now: () => 5000, timeout: 60_000 });
    for (const key of ["\ufffd", "\ufffe", "\uffff", "\u{1ffff}", "\ufeff", "\0", "%", "%00", "%EF%BF%BF"]) {
      expect(await limiter.limit("login", { key }), key).toMatchObject({ ok: true, remaining: 1 });
    }
    wide.close();
  });

  test("a locked file: the call is repeated until its deadline, and takes nothing after it", async () => {
    const store = sqlite(client, { table: "order" });
    const limiter = defineLimits(limits, { store, timeout: 60_000 });
    const impatient = defineLimits(limits, { store, timeout: 100, log: false });
    await limiter.limit("login", { key: "k" });
    const other = (await clients["better-sqlite3"](join(folder, "rows.db"))) as unknown as {
      client: Client;
      close(): void;
    };
    other.client.exec("BEGIN IMMEDIATE");
    const late = await impatient.limit("login", { key: "k" });
    expect(late.degraded).toBe(true);
    other.client.exec("COMMIT");
    other.close();
    expect((await limiter.getValue("login", { key: "k" })).value).toBeCloseTo(1, 1);
    expect(await limiter.limit("login", { key: "k" })).toMatchObject({ ok: true });
  });
});
