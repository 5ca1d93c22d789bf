/** What is stored, by sessions and clients of any settings, and what a role may do. */
import { readFileSync } from "node:fs";
import { drizzle } from "drizzle-orm/mysql2";
import { createPool as createMariadbPool } from "mariadb";
import { createPoolCluster as createCallbackCluster } from "mysql2";
import { createPool, createPoolCluster } from "mysql2/promise";
import { describe, expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { mysql } from "tidegate/mysql";
import { limits, testTable } from "../table.ts";
import { withServer } from "./fixture.ts";

const fixture = withServer();

testTable({
  store: (table) => mysql(fixture.pool(), { table }),
  rows: (table) => fixture.rows(`SELECT CONVERT(id USING utf8mb4), state, drop_at FROM ${table} ORDER BY id`),
  run: (sql) => fixture.admin.query(sql),
  reasons: ["Unknown column", "Unknown column 'drop_at'"],
});

test("a reset row is kept for a minute, so that no step that read it before brings the old state back", async () => {
  const limiter = defineLimits(limits, { timeout: 60_000, store: mysql(fixture.pool(), { table: "r" }) });
  await limiter.limit("login", { key: "k" });
  await limiter.reset("login", { key: "k" });
  const [[state, left] = []] = await fixture.rows("SELECT state, drop_at - UNIX_TIMESTAMP() FROM r");
  expect(state).toBeNull();
  expect(Number(left)).toBeGreaterThan(10);
});

test("a full row that a call writes while a sweep is about to delete it is kept", async () => {
  const pool = fixture.pool();
  let sweeps = 0;
  const client = {
    execute() {},
    async query(options: { sql: string }, values: unknown[]): Promise<unknown> {
      if (options.sql.startsWith("DELETE")) {
        sweeps++;
        await fixture.admin.query("UPDATE swept SET drop_at = UNIX_TIMESTAMP() + 100 WHERE id = 'login:written'");
      }
      return pool.query(options, values);
    },
  };
  const limiter = defineLimits(limits, { timeout: 60_000, store: mysql(client as never, { table: "swept" }) });
  await limiter.check("login", { key: "k" });
  for (const key of ["old", "written"])
    await fixture.admin.query(`INSERT INTO swept VALUES ('login:${key}', '1 1000', 1)`);
  for (let i = 0; sweeps === 0; i++) await limiter.limit("login", { key: `${i}` });
  const left = await fixture.rows("SELECT id FROM swept WHERE id IN ('login:old', 'login:written')");
  expect(left.map(([id]) => String(id))).toEqual(["login:written"]);
});

const COLUMNS = {
  id: "id VARBINARY(1200) NOT NULL PRIMARY KEY",
  state: "state VARCHAR(64) CHARACTER SET ascii",
  drop_at: "drop_at BIGINT NOT NULL",
};
test.each<[string, Partial<typeof COLUMNS>, string]>([
  ["a text column for keys", { id: "id VARCHAR(191) NOT NULL PRIMARY KEY" }, "id varchar(191)"],
  ["a shorter column for keys", { id: "id VARBINARY(255) NOT NULL PRIMARY KEY" }, "id varbinary(255)"],
  ["keys that are not unique", { id: "id VARBINARY(1200) NOT NULL" }, "id varbinary(1200), not unique"],
  ["a shorter column for states", { state: "state VARCHAR(20)" }, "state varchar(20)"],
  ["numbers for states", { state: "state DOUBLE" }, "state double"],
  ["times for numbers", { drop_at: "drop_at DATETIME NOT NULL" }, "drop_at datetime"],
])("a table with %s is refused, with the column and what to do, until it is repaired", async (_, other, named) => {
  const table = "other_types";
  const made = (columns: object) => `CREATE TABLE ${table} (${Object.values(columns).join()}) ROW_FORMAT = DYNAMIC`;
  await fixture.admin.query(`DROP TABLE IF EXISTS ${table}`);
  await fixture.admin.query(made({ ...COLUMNS, ...other }));
  const pool = fixture.pool({ connectionLimit: 1 });
  // In which the server cuts off what is too long, instead of refusing it.
  await pool.query("SET SESSION sql_mode = ''");
  const limiter = defineLimits(limits, { timeout: 60_000, store: mysql(pool, { table }), log: false });
  const refused =
    `the table ${table} has columns of other types (${named}): make it as the guide does, or give the store one of its own, ` +
    'such as { table: "rate_limits" }';
  for (let turn = 0; turn < 2; turn++) {
    const { ok, degraded, cause } = await limiter.limit("login", { key: "k" });
    expect([ok, degraded, (cause as Error).message]).toEqual([false, true, expect.stringContaining(refused)]);
  }
  await fixture.admin.query(`DROP TABLE ${table}`);
  await fixture.admin.query(made(COLUMNS));
  expect(await limiter.limit("login", { key: "k" })).toMatchObject({ ok: true, remaining: 1 });
});

describe("sessions that are set up otherwise decide the same", () => {
  test.each([
    ["sql_mode = ''"],
    ["sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH'"],
    ["sql_mode = 'TRADITIONAL'"],
    ["TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
    ["TRANSACTION ISOLATION LEVEL READ COMMITTED"],
    ["TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"],
    ["time_zone = '-11:00'"],
    ["character_set_client = binary, character_set_connection = binary, character_set_results = binary"],
    ["character_set_client = latin1, character_set_connection = latin1, character_set_results = latin1"],
    ["character_set_connection = utf16"],
  ])("%s", async (setting) => {
    const pool = fixture.pool({ connectionLimit: 1, rowsAsArray: false, namedPlaceholders: true });
    await pool.query(`SET SESSION ${setting}`);
    const [odd, usual] = [mysql(pool, { table: "d" }), mysql(fixture.pool(), { table: "d" })];
    for (const key of ["é", "\ud800", "\udfff", "\0", "a", "a ", "A", "\\", "'", "x".repeat(1024)]) {
      for (const [i, store] of [odd, usual, odd].entries()) {
        const limiter = defineLimits({ login: limits.login }, { timeout: 60_000, store, now: () => 5000, log: false });
        if (i === 0) await limiter.reset("login", { key });
        const { value, degraded } = await limiter.limit("login", { key });
        expect([value, degraded], JSON.stringify(key)).toEqual([Math.max(1 - i, 0), undefined]);
      }
    }
  });

  test.each([
    ["mysql2", () => createPool({ ...fixture.server.options, nestTables: true, typeCast: () => 7 })],
    ["mariadb", () => createMariadbPool({ ...fixture.server.options, nestTables: true, typeCast: () => 7 })],
  ] as const)("%s that nests or casts what other queries return", async (name, open) => {
    const pool = open();
    const limiter = defineLimits(
      { login: limits.login },
      { timeout: 60_000, store: mysql(pool), now: () => 5000, log: false },
    );
    for (const left of [1, 0]) {
      expect(await limiter.limit("login", { key: `cast ${name}` })).toMatchObject({ ok: true, value: left });
    }
    await pool.end();
  });

  test("without autocommit every call fails, with the remedy", async () => {
    const pool = fixture.pool({ connectionLimit: 1 });
    await pool.query("SET SESSION autocommit = 0");
    const limiter = defineLimits(limits, { timeout: 60_000, store: mysql(pool), log: false });
    const { cause } = await limiter.limit("login", { key: "k" });
    expect(String(cause)).toContain("must have autocommit = 1");
  });
});

describe("a role", () => {
  const connect = async (role: string, ...grants: string[]) => {
    await fixture.admin.query(`CREATE USER ${role}`);
    for (const grant of grants) await fixture.admin.query(`GRANT ${grant} ON test.* TO ${role}`);
    return fixture.pool({ user: role });
  };

  const TAKE = ["login", { key: "k" }] as const;

  test("that may CREATE makes the table", async () => {
    const store = mysql(await connect("makes", "CREATE, SELECT, INSERT, UPDATE, DELETE"), { table: "made" });
    expect(
      (await defineLimits(limits, { timeout: 60_000, store, log: false }).limit(...TAKE)).degraded,
    ).toBeUndefined();
  });

  test("that may not CREATE uses the table of the guide's SQL, which is the same", async () => {
    const pool = await connect("app");
    const sql = readFileSync(new URL("table.sql", import.meta.url), "utf8");
    for (const statement of sql.split(";\n").slice(0, -1)) await fixture.admin.query(statement);
    expect(
      (await defineLimits(limits, { timeout: 60_000, store: mysql(pool), log: false }).limit(...TAKE)).degraded,
    ).toBeUndefined();
    const made = async (table: string) => String((await fixture.rows(`SHOW CREATE TABLE ${table}`))[0]?.[1]);
    expect(await made("tidegate")).toBe((await made("made")).replace("`made`", "`tidegate`"));
  });

  test("that may not CREATE reports a missing table", async () => {
    const pool = await connect("cannot", "SELECT, INSERT, UPDATE, DELETE");
    const limiter = defineLimits(limits, { timeout: 60_000, store: mysql(pool, { table: "absent" }), log: false });
    const { cause } = await limiter.limit("login", { key: "k" });
    expect(String(cause)).toMatch(/CREATE command denied/);
  });
});

test("results of other keys have the same columns: mysql2 compiles and keeps a parser for each other list of them", async () => {
  const pool = fixture.pool();
  const columns = new Set<string>();
  const query = async (...args: Parameters<typeof pool.query>) => {
    const result = await pool.query(...args);
    columns.add(String(result[1]?.map(({ name }) => name)));
    return result;
  };
  const limiter = defineLimits(limits, { timeout: 60_000, store: mysql({ query, execute() {} } as never) });
  await limiter.limit("login", { key: "first" });
  const before = columns.size;
  for (const key of ["a", "b", "c"]) await limiter.check("login", { key });
  expect(columns.size).toBe(before);
});

test("connects and creates the table before the first call's timeout begins", async () => {
  const store = mysql(fixture.pool(), { table: "early" });
  await store.connecting;
  expect(await fixture.rows("SELECT COUNT(*) FROM early")).toEqual([[0]]);
  expect(store.connecting).toBeUndefined();
});

test("Drizzle's $client is accepted as client, and its database refused with an error that names $client", async () => {
  const db = drizzle(fixture.server.uri);
  expect(() => mysql(db as never)).toThrow("got a database of Drizzle; pass its `$client`");
  const limiter = defineLimits(limits, { timeout: 60_000, store: mysql(db.$client), log: false });
  expect((await limiter.limit("login", { key: "drizzle" })).degraded).toBeUndefined();
});

test("a mariadb pool of before 3.1, which ignores metaAsArray, keeps the limits", async () => {
  const pool = createMariadbPool(fixture.server.options);
  const query = (options: object, values: never) => pool.query({ ...options, metaAsArray: false } as never, values);
  const store = mysql({ query, batch() {} } as never, { table: "older" });
  const limiter = defineLimits(limits, { timeout: 60_000, store, log: false });
  const calls = [1, 2, 3].map(() => limiter.limit("login", { key: "k" }));
  expect((await Promise.all(calls)).map(({ ok, cause }) => cause ?? ok)).toEqual([true, true, false]);
  await pool.end();
});

test("a mariadb pool of before 3.3 with namedPlaceholders, which then takes no `?`, keeps the limits", async () => {
  const pool = createMariadbPool({ ...fixture.server.options, namedPlaceholders: true });
  const query = (options: { namedPlaceholders?: boolean; sql: string }, values: never) =>
    pool.query(
      options.namedPlaceholders === false ? options : { ...options, sql: options.sql.replaceAll("?", "NULL") },
      values,
    );
  const store = mysql({ query, batch() {} } as never, { table: "named" });
  const limiter = defineLimits(limits, { timeout: 60_000, store, log: false });
  for (const ok of [true, true, false]) expect(await limiter.limit("login", { key: "k" })).toMatchObject({ ok });
  await pool.end();
});

test("a pool of a cluster is accepted as client, and the cluster refused with an error that names the pool", async () => {
  const cluster = createPoolCluster();
  cluster.add("primary", fixture.server.options);
  const message = 'got a cluster of pools; pass cluster.of("name") of its primary, from mysql2/promise or mariadb';
  for (const made of [cluster, createCallbackCluster()]) expect(() => mysql(made as never)).toThrow(message);
  const store = mysql(cluster.of("primary"), { table: "cluster" });
  const limiter = defineLimits(limits, { timeout: 60_000, store, log: false });
  for (const ok of [true, true, false]) expect(await limiter.limit("login", { key: "k" })).toMatchObject({ ok });
  await cluster.end();
});

test("a client with callbacks, one that returns rows alone, and what is no client, are refused", async () => {
  const query = () => Promise.resolve([[]]);
  const callbacks = (_sql: string, _values: unknown[], _done: () => void) => {};
  // As `mysql`, `mariadb/callback`, `promise-mysql`, Sequelize and TypeORM's DataSource.
  const others = [
    { query: callbacks },
    { query: callbacks, execute: callbacks, batch: callbacks },
    { query },
    { query, getQueryInterface: query },
    { query, createQueryRunner: query },
  ];
  for (const bad of [undefined, null, 1, {}, { query: 1 }, ...others]) {
    expect(() => mysql(bad as never)).toThrow(
      "`client` must be a pool or a connection of mysql2 or mariadb, with promises",
    );
  }
  for (const result of [{}, Promise.resolve([[1, 5000, null]])]) {
    const store = mysql({ query: () => result as never, execute() {} } as never);
    const { cause } = await defineLimits(limits, { timeout: 60_000, store, log: false }).limit("login");
    expect(String(cause)).toContain("must return a promise of rows and fields");
  }
});
