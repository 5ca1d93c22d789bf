/** `transactional()` on PostgreSQL: what isolates processes, as its page describes it. */
import { expect, test } from "vitest";
import { defineLimits, type State } from "tidegate";
import { transactional } from "tidegate/store";
import { granted, STRANGE, withServer } from "./fixture.ts";

const fixture = withServer();

/** The ways of the page: how a transaction begins, and what `get` runs before it reads. */
const WAYS = {
  "serializable transactions, run again after a conflict": ["BEGIN ISOLATION LEVEL SERIALIZABLE", undefined],
  "a lock on the identity": ["BEGIN", "SELECT pg_advisory_xact_lock(hashtext($1))"],
  "a lock on the row, inserted empty first": [
    "BEGIN",
    "WITH empty AS (SELECT $1 AS id) INSERT INTO mine SELECT * FROM empty ON CONFLICT DO NOTHING",
  ],
} as const;

test.each(Object.entries(WAYS))(
  "%s: eight processes grant a new key exactly its tokens",
  async (way, [begin, lock]) => {
    await fixture.rows("DROP TABLE IF EXISTS mine");
    await fixture.rows("CREATE TABLE mine (id text PRIMARY KEY, value float8, ts float8)");
    const forUpdate = way.includes("on the row") ? "FOR UPDATE" : "";
    const processOf = () => {
      const pool = fixture.pool({ max: 2 });
      return transactional({
        name: "mine",
        async transaction(body) {
          const client = await pool.connect();
          try {
            for (;;) {
              try {
                await client.query(begin);
                const result = await body({
                  async get(id) {
                    if (lock !== undefined) await client.query(lock, [id]);
                    const { rows } = await client.query(`SELECT value, ts FROM mine WHERE id = $1 ${forUpdate}`, [id]);
                    return rows[0] === undefined || rows[0].value === null ? null : (rows[0] as State);
                  },
                  async set(id, { value, ts }) {
                    const text = `INSERT INTO mine VALUES ($1, $2, $3)
                    ON CONFLICT (id) DO UPDATE SET value = excluded.value, ts = excluded.ts`;
                    await client.query(text, [id, value, ts]);
                  },
                  delete: async (id) => void (await client.query("DELETE FROM mine WHERE id = $1", [id])),
                });
                await client.query("COMMIT");
                return result;
              } catch (error) {
                await client.query("ROLLBACK");
                if ((error as { code?: unknown }).code !== "40001") throw error;
              }
            }
          } finally {
            client.release();
          }
        },
      });
    };
    const configs = { one: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 5 } } as const;
    const keys = STRANGE.filter((key) => !key.includes("\0")).slice(0, 8);
    const processes = Array.from({ length: 8 }, () =>
      defineLimits(configs, { store: processOf(), timeout: 60_000, now: () => 5000 }),
    );
    const decisions = await Promise.all(
      keys.map((key) => Promise.all(processes.flatMap((each) => [1, 2].map(() => each.limit("one", { key }))))),
    );
    expect(decisions.flat().filter(({ degraded }) => degraded)).toEqual([]);
    expect(decisions.map(granted)).toEqual(keys.map(() => 5));
  },
);

test("with `lock_timeout` below the call's timeout, a locked row keeps no connection, and fails its key alone", async () => {
  await fixture.rows("DROP TABLE IF EXISTS locked");
  await fixture.rows("CREATE TABLE locked (id text PRIMARY KEY, value float8, ts float8)");
  await fixture.rows("INSERT INTO locked VALUES ('one:held', NULL, NULL)");
  const holder = await fixture.pool({ max: 1 }).connect();
  await holder.query("BEGIN");
  await holder.query("SELECT 1 FROM locked WHERE id = 'one:held' FOR UPDATE");
  const pool = fixture.pool({ max: 2 });
  const store = transactional({
    name: "mine",
    async transaction(body) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN; SET LOCAL lock_timeout = '50ms'");
        const result = await body({
          async get(id) {
            await client.query("INSERT INTO locked VALUES ($1, NULL, NULL) ON CONFLICT DO NOTHING", [id]);
            const { rows } = await client.query("SELECT value, ts FROM locked WHERE id = $1 FOR UPDATE", [id]);
            return rows[0].value === null ? null : (rows[0] as State);
          },
          async set(id, { value, ts }) {
            await client.query("UPDATE locked SET value = $2, ts = $3 WHERE id = $1", [id, value, ts]);
          },
          delete: async (id) => void (await client.query("DELETE FROM locked WHERE id = $1", [id])),
        });
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      } finally {
        client.release();
      }
    },
  });
  const configs = { one: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 5 } } as const;
  const limits = defineLimits(configs, { store, timeout: 10_000, log: false });
  // More than there are connections, and than open the breaker.
  for (let i = 0; i < 6; i++) {
    expect((await limits.limit("one", { key: "held" })).cause).toMatchObject({
      scope: "key",
      message: expect.stringContaining("lock timeout"),
    });
  }
  expect(await limits.limit("one", { key: "beside" })).toMatchObject({ ok: true });
  await holder.query("ROLLBACK");
  holder.release();
  expect(await limits.limit("one", { key: "held" })).toMatchObject({ ok: true, remaining: 4 });
});
