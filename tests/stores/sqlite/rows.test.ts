/** What is stored: rows, what denials leave, corrupt states, resets and the deletion of full states. On better-sqlite3. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { defineLimits, HOUR, SECOND } from "tidegate";
import { sqlite, type SyncSqlite } from "tidegate/sqlite";
import { inRuntime } from "../../hosts/runtimes.ts";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { clients } from "./clients.mjs";

interface Client extends SyncSqlite {
  exec(sql: string): void;
  prepare(sql: string): ReturnType<SyncSqlite["prepare"]> & { all(...values: unknown[]): unknown[] };
}

const folder = temporaryFolder("sqlite");
afterAll(() => remove(folder));
const limits = {
  login: { kind: "token bucket", rate: 2, period: HOUR },
  brief: { kind: "token bucket", rate: 1, period: SECOND },
  parts: { kind: "token bucket", rate: 4, period: HOUR, shards: 4 },
} as const;

await inRuntime("better-sqlite3", async () => {
  const { client, close } = (await clients["better-sqlite3"](join(folder, "rows.db"))) as unknown as {
    client: Client;
    close(): void;
  };
  afterAll(close);
  const rows = (table: string) => client.prepare(`SELECT id, state, drop_at FROM ${table} ORDER BY id`).all();

  test("a grant is one row, a limit with shards too; a denial and a check write nothing", async () => {
    const limiter = defineLimits(limits, { store: sqlite(client, { table: "a" }), now: () => 5000, timeout: 60_000 });
    await limiter.limit("login", { key: "k", count: 1.5 });
    await limiter.limit("parts", { count: 3 });
    const before = rows("a");
    expect(before).toMatchObject([
      { id: "login:k", state: "0.5 5000" },
      { id: "parts", state: "1 5000" },
    ]);
    expect((await limiter.limit("login", { key: "k" })).ok).toBe(false);
    await limiter.check("login", { key: "k", count: 0.25 });
    await limiter.limitAll([{ name: "login", key: "k" }, { name: "parts" }]);
    expect(rows("a")).toEqual(before);
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

  test("a limit of which limitAll takes nothing keeps its row, and when that is deleted", async () => {
    const limiter = defineLimits(limits, { store: sqlite(client, { table: "k" }), now: () => 5000, timeout: 60_000 });
    await limiter.limit("parts", { count: 3 });
    const before = rows("k");
    await limiter.limitAll([
      { name: "login", key: "k" },
      { name: "parts", count: 0 },
    ]);
    expect(rows("k")).toEqual([expect.objectContaining({ id: "login:k", state: "1 5000" }), ...(before as unknown[])]);
  });

  test("a state that does not decode is reported with its identity and kept until reset", async () => {
    const limiter = defineLimits(limits, { store: sqlite(client, { table: "b" }), timeout: 60_000, log: false });
    await limiter.limit("login", { key: "k" });
    client.exec("UPDATE b SET state = 'garbage'");
    const { ok, cause } = await limiter.limit("login", { key: "k" });
    expect([ok, String(cause)]).toEqual([false, expect.stringContaining('sqlite: read of "login:k" failed')]);
    expect(rows("b")).toMatchObject([{ state: "garbage" }]);
    await limiter.reset("login", { key: "k" });
    expect((await limiter.limit("login", { key: "k" })).ok).toBe(true);
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

  test.each([
    ["one", "user_id", "no such column: id"],
    ["two", "id TEXT, state", "has no column named drop_at"],
  ])("a table with other columns is reported, with the remedy (%s: %s)", async (table, columns, reason) => {
    client.exec(`CREATE TABLE ${table} (${columns} TEXT)`);
    const limiter = defineLimits(limits, { store: sqlite(client, { table }), timeout: 60_000, log: false });
    const { cause } = await limiter.limit("login", { key: "k" });
    expect(String(cause)).toMatch(
      /the table (one|two) is not a store's \(.*\): give the store one of its own, such as/,
    );
    expect(String(cause)).toContain(reason);
  });

  test("writes delete full states, and no others", async () => {
    const limiter = defineLimits(limits, { store: sqlite(client, { table: "c" }), timeout: 60_000 });
    await limiter.limit("brief", { key: "full" });
    await limiter.limit("login", { key: "kept" });
    client.exec("UPDATE c SET drop_at = 1 WHERE id = 'brief:full'");
    for (let i = 0; i < 70; i++) await limiter.limit("login", { key: `${i}` });
    const ids = (rows("c") as { id: string }[]).map(({ id }) => id);
    expect(ids).not.toContain("brief:full");
    expect(ids).toContain("login:kept");
    expect(ids).toHaveLength(71);
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
