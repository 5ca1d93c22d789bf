/** `transactional()` on PostgreSQL, by keys that its text does not hold, as the page of your own database describes it. */
import type { Pool } from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { defineLimits, type State } from "tidegate";
import { transactional } from "tidegate/store";
import { storeSuite } from "tidegate/testing";
import { withServer } from "./fixture.ts";

const fixture = withServer();
let pool: Pool;
beforeAll(() => {
  pool = fixture.pool();
});

/** A store in the table `mine`, whose `id` is what `idOf` returns. */
const storeBy = (idOf: (id: string) => unknown) =>
  transactional({
    name: "mine",
    async transaction(body) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        const result = await body({
          async get(id) {
            await client.query("SELECT pg_advisory_xact_lock(hashtext($1))", [JSON.stringify(id)]);
            const { rows } = await client.query("SELECT value, ts FROM mine WHERE id = $1", [idOf(id)]);
            return (rows[0] as State | undefined) ?? null;
          },
          async set(id, { value, ts }) {
            const update = "ON CONFLICT (id) DO UPDATE SET value = excluded.value, ts = excluded.ts";
            await client.query(`INSERT INTO mine VALUES ($1, $2, $3) ${update}`, [idOf(id), value, ts]);
          },
          delete: async (id) => void (await client.query("DELETE FROM mine WHERE id = $1", [idOf(id)])),
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

async function made(type: string): Promise<void> {
  await fixture.rows("DROP TABLE IF EXISTS mine");
  await fixture.rows(`CREATE TABLE mine (id ${type} PRIMARY KEY, value float8, ts float8)`);
}

test("in `text`, a key with NUL fails alone, however often; halves of a pair are one key", async () => {
  await made("text");
  const limits = defineLimits(
    { one: { kind: "token bucket", rate: 1, period: 2 ** 40 } },
    { store: storeBy((id) => id), timeout: 60_000, log: false },
  );
  expect(await limits.limit("one", { key: "\ud83d" })).toMatchObject({ ok: true });
  const other = await limits.limit("one", { key: "\ude00" });
  expect([other.ok, other.degraded]).toEqual([false, undefined]);
  for (let i = 0; i < 10; i++) {
    const { cause } = await limits.limit("one", { key: `\0${i}` });
    expect(cause).toMatchObject({ scope: "key", message: expect.stringContaining("0x00; the column of the identity") });
  }
  expect(await limits.limit("one", { key: "beside" })).toMatchObject({ ok: true });
});

describe("the bytes of UTF-16 in `bytea`", () => {
  storeSuite({
    test,
    describe,
    create: async () => {
      await made("bytea");
      return storeBy((id) => Buffer.from(id, "utf16le"));
    },
    stored: () => async (id) => {
      const [row] = await fixture.rows("SELECT value, ts FROM mine WHERE id = $1", [Buffer.from(id, "utf16le")]);
      return (row as State | undefined) ?? null;
    },
  });
});
