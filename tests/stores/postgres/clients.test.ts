import { PGlite } from "@electric-sql/pglite";
import { Client, type Pool } from "pg";
import postgresJs from "postgres";
import { describe, expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { defineLimits } from "tidegate";
import { migrate, migration, postgres, type PostgresClient } from "tidegate/postgres";
import { granted, PATIENT, STRANGE, stock, take, withServer } from "./fixture.ts";

const fixture = withServer();

/** Everything that a store does, through a client. */
async function everything(client: PostgresClient, name: string, prepare = true): Promise<void> {
  const store = postgres(client, { ...PATIENT, prepare });
  const limit = new Limit(`${name}.plain`, { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 10 });
  const sharded = stock(`${name}.shards`, 10, { shards: 3 });
  for (const [turn, left] of [8, 6, 4].entries()) {
    expect((await store.decide(take(limit, "k", 2))).value, `turn ${turn}`).toBeCloseTo(left, 6);
  }
  expect((await store.decide(take(limit, "k", 5))).ok).toBe(false);
  expect((await store.decide(take(limit, "k", 5, { reserve: true }))).reserved).toBe(true);
  expect((await store.decide(take(limit, "k", 3, { op: "give" }))).value).toBeCloseTo(2, 6);
  expect((await store.decide(take(sharded, "k", 9))).ok).toBe(true);
  expect((await store.decideAll([take(limit, "k", 2), take(limit, "l", 2)])).ok).toBe(true);
  expect((await store.decideAll([take(limit, "k", 2), take(limit, "l", 2)])).ok).toBe(false);
  expect((await store.getValue(limit, "l")).value).toBeCloseTo(8, 6);
  await store.reset(limit, "l");
  expect((await store.getValue(limit, "l")).value).toBe(10);
  // One call for each, then all in one statement: every key has its own row.
  for (const key of STRANGE) expect((await store.decide(take(limit, `${key}!`))).value, key).toBeCloseTo(9, 6);
  const answers = await Promise.all(STRANGE.map((key) => store.decide(take(limit, key, 3))));
  expect(granted(answers)).toBe(STRANGE.length);
  expect(granted(await Promise.all(STRANGE.map((key) => store.decide(take(limit, `${key}!`, 9)))))).toBe(
    STRANGE.length,
  );
  for (const key of STRANGE) expect((await store.getValue(limit, key)).value, key).toBeCloseTo(7, 6);
  const sharing = await Promise.all(STRANGE.map((key) => store.decide(take(sharded, key, 7))));
  expect(granted(sharing)).toBe(STRANGE.length);
}

/** Operators for pairs of types that PostgreSQL has none for, but converts: it prefers these to its own. */
const PLANTED = `DO $plant$
DECLARE a text; b text; op text; n int := 0;
BEGIN
  FOREACH a IN ARRAY '{float8,numeric,int4,text}'::text[] LOOP FOREACH b IN ARRAY '{float8,numeric,int4,text}'::text[] LOOP
    CONTINUE WHEN a = b;
    FOREACH op IN ARRAY '{+,-,*,/,<,>,<=,>=,=,<>,||}'::text[] LOOP
      n := n + 1;
      EXECUTE format($make$
        CREATE FUNCTION public.planted_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$planted$$; END'
      $make$, n, a, b, CASE WHEN op = '||' THEN 'text' WHEN strpos('+-*/', op) > 0 THEN 'float8' ELSE 'boolean' END);
      EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.planted_%s)', op, a, b, n);
    END LOOP;
  END LOOP; END LOOP;
END $plant$`;

describe("every operation works", () => {
  test("with pg's Pool", () => everything(fixture.pool(), "pool"));
  test("with pg's Pool, and statements that are not prepared", () => everything(fixture.pool(), "unprepared", false));
  test("with pg's Client", async () => {
    const client = new Client(fixture.server.options);
    await client.connect();
    await everything(client, "client");
    await client.end();
  });
  test("not with pg's Client that is not connected: the error names the call that connects it", async () => {
    const limits = defineLimits(
      { a: { kind: "token bucket", rate: 1, period: 1000 } },
      { store: postgres(new Client()), log: false },
    );
    const { cause } = await limits.limit("a");
    expect(String(cause)).toContain(
      "the client is not connected; await client.connect() before the first call, and close",
    );
  });

  test.each([true, false])("with postgres.js, prepare: %s", async (prepare) => {
    const { host, port, user, database } = fixture.server.options;
    const sql = postgresJs({ host, port, user, database, max: 4, onnotice: () => {} });
    await migrate(sql);
    await everything(sql, `js.${prepare}`, prepare);
    await sql.end();
  });
  test("with postgres.js that renames columns", async () => {
    const { host, port, user, database } = fixture.server.options;
    const sql = postgresJs({ host, port, user, database, transform: postgresJs.pascal, onnotice: () => {} });
    await everything(sql, "pascal");
    await sql.end();
  });
  test("with PGlite", async () => {
    const client = await PGlite.create();
    await migrate(client);
    await migrate(client);
    await everything(client, "lite");
    await client.close();
  });
  test("with any query(text, values), whose rows are objects or arrays", async () => {
    const pool = fixture.pool();
    await everything({ query: (text, values) => pool.query(text, values) }, "any");
    await everything({ query: async (text, values) => (await pool.query(text, values)).rows }, "rows");
    await everything(
      { query: (text, values) => pool.query({ text, values: values ?? [], rowMode: "array" }) },
      "arrays",
    );
  });
  test("with a function that has query and an unsafe that sends nothing, as neon() makes", async () => {
    const pool = fixture.pool();
    const neon = Object.assign(() => {}, {
      query: async (text: string, values?: unknown[]) => (await pool.query(text, values)).rows,
      unsafe: (sql: string) => ({ sql }),
    });
    await migrate(neon);
    await everything(neon, "neon");
  });
  test("not with Bun's SQL on another database, which the error names", () => {
    const sql = Object.assign(() => {}, { unsafe: () => Promise.resolve([]), options: { adapter: "mysql" } });
    expect(() => postgres(sql)).toThrow(
      'must be a PostgreSQL client, with query(text, values) or unsafe(text, values); got one of "mysql"',
    );
  });

  test("not with a value that is no client: the error has the rule", () => {
    for (const bad of [undefined, null, 1, "postgres://", {}, { query: 1 }]) {
      expect(() => postgres(bad as never)).toThrow(/^`client` must be a PostgreSQL client, with query/);
    }
  });
  test("not with settings out of range, which the errors name", () => {
    const pool = fixture.pool();
    expect(() => postgres(pool, { statements: 0 })).toThrow("`statements` must be an integer from 1 to 100; got 0");
    expect(() => postgres(pool, { batch: 1.5 })).toThrow("`batch` must be an integer from 1 to 10000; got 1.5");
    expect(() => postgres(pool, { statementTimeout: Number.NaN })).toThrow("`statementTimeout` must be");
    expect(() => postgres(pool, { statementTimeout: "soon" as never })).toThrow("`statementTimeout` must be");
    expect(() => postgres(pool, { statementTimeout: "5s" })).not.toThrow();
    expect(() => postgres(pool, { schema: "" })).toThrow(
      '`schema` must be a name of 1 to 63 bytes of UTF-8 without U+0000; got ""',
    );
    expect(() => migration({ schema: "é".repeat(32) })).toThrow("`schema` must be");
    expect(() => migration({ unlogged: 1 as never })).toThrow("`unlogged` must be true or false; got 1");
  });
});

describe("databases and sessions that are set up otherwise", () => {
  const other = async (database: string, create: string, body: (pool: Pool) => Promise<void>): Promise<void> => {
    await fixture.admin.query(`CREATE DATABASE ${database} ${create}`);
    const pool = fixture.pool({ database });
    await migrate(pool);
    await body(pool);
  };
  test("LATIN1 keeps every key apart", () =>
    other("latin", "ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", (pool) =>
      everything(pool, "latin"),
    ));
  test("extra_float_digits, search_path, bytea_output and datestyle do not change a bit", async () => {
    const options =
      "-c extra_float_digits=-15 -c search_path= -c bytea_output=escape -c datestyle=SQL,DMY -c standard_conforming_strings=off";
    const pool = fixture.pool({ options });
    await everything(pool, "odd");
    const store = postgres(pool, PATIENT);
    const limit = stock("digits", 10);
    const answer = await store.decide(take(limit, "k", 1 / 3), 1_763_640_000_000);
    expect(answer.value).toBe(10 - 1 / 3);
    expect((await store.decide(take(limit, "k", 1 / 3), 1_763_640_000_000)).value).toBe(10 - 1 / 3 - 1 / 3);
  });
  test("operators that another role has made in the schema public are not executed", () =>
    other("planted", "", async (pool) => {
      await pool.query(PLANTED);
      await expect(pool.query("SELECT 1::float8 * 1")).rejects.toThrow("planted");
      await everything(pool, "planted");
      await postgres(pool, PATIENT).purge();
      await pool.query("CALL tidegate.sweep()");
      const { rows } = await pool.query("SELECT ok, value FROM tidegate.decide('take', 'a', 'k', 10, 60000)");
      expect(rows).toEqual([{ ok: true, value: 9 }]);
      expect((await pool.query("SELECT tidegate.unblock('a', 'k')")).rowCount).toBe(1);
    }));
  // Where the server has a JIT, the process loads that for the first statement that it compiles.
  test.runIf(process.platform === "linux")(
    "a session without nested loops, sorts and indexes compiles nothing",
    async () => {
      const off = ["nestloop", "sort", "indexscan", "bitmapscan"].map((name) => `-c enable_${name}=off`);
      const pool = fixture.pool({ max: 1, options: off.join(" ") });
      await everything(pool, "off");
      // Read by the server: root may not read it in a container, where the server has another user.
      const { rows } = await pool.query("SELECT pg_read_file('/proc/self/maps') LIKE '%llvmjit%' AS loaded");
      expect(rows).toEqual([{ loaded: false }]);
    },
  );
});

describe("the migration", () => {
  test("keeps what is stored, also where several run at the same time or again", async () => {
    const pool = fixture.pool();
    await Promise.all(Array.from({ length: 8 }, () => migrate(pool, { schema: 'my "limits"' })));
    const store = postgres(pool, { ...PATIENT, schema: 'my "limits"' });
    const limit = stock("kept", 10);
    await store.decide(take(limit, "k", 4));
    await migrate(pool, { schema: 'my "limits"' });
    expect((await store.getValue(limit, "k")).value).toBeCloseTo(6, 6);
    expect((await postgres(pool, PATIENT).getValue(limit, "k")).value).toBe(10);
  });
  test("makes one table, one index, and functions, in one schema", async () => {
    const columns =
      "SELECT column_name || ' ' || data_type AS c FROM information_schema.columns WHERE table_schema = 'tidegate' ORDER BY ordinal_position";
    expect((await fixture.rows(columns)).map(({ c }) => c)).toEqual([
      "id bytea",
      "value double precision",
      "ts double precision",
      "full_at double precision",
    ]);
    expect(await fixture.rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'tidegate'")).toHaveLength(1);
    const relations = "SELECT relname FROM pg_class WHERE relnamespace = 'tidegate'::regnamespace ORDER BY 1";
    expect((await fixture.rows(relations)).map(({ relname }) => relname)).toEqual(["states", "states_pkey"]);
  });
  test("makes an unlogged table where `unlogged` is set", async () => {
    await migrate(fixture.admin, { schema: "quick", unlogged: true });
    const text =
      "SELECT relnamespace::regnamespace::text AS schema, relpersistence::text AS kept FROM pg_class WHERE relname = 'states' AND relnamespace::regnamespace::text IN ('quick', 'tidegate') ORDER BY 1";
    expect(await fixture.rows(text)).toEqual([
      { schema: "quick", kept: "u" },
      { schema: "tidegate", kept: "p" },
    ]);
  });
  test("is required: without it a call is a StoreError, and a limiter's decision is degraded", async () => {
    const store = postgres(fixture.pool(), { ...PATIENT, schema: "absent" });
    const limit = stock("absent", 10);
    await expect(store.decide(take(limit, "k"))).rejects.toMatchObject({
      code: "TIDEGATE_STORE",
      cause: { code: "3F000" },
    });
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } }, { store });
    expect(await limits.limit("api")).toMatchObject({ ok: false, degraded: true });
  });
});
