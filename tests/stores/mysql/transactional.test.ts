/** `transactional()` on MySQL inside the caller's own transactions, as its page describes it. */
import type { PoolConnection, RowDataPacket } from "mysql2/promise";
import { expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { decodeText, encodeText, transactional } from "tidegate/store";
import { withServer } from "./fixture.ts";

const fixture = withServer();

test("a row inserted with ON DUPLICATE KEY UPDATE: parallel transactions take exactly the tokens, none in a deadlock", async () => {
  const pool = fixture.pool({ connectionLimit: 20 });
  await fixture.rows("CREATE TABLE mine (id VARBINARY(1200) PRIMARY KEY, value DOUBLE, ts DOUBLE)");
  await fixture.rows("CREATE TABLE orders (who VARCHAR(9))");
  const storeIn = (connection: PoolConnection) =>
    transactional({
      name: "mine",
      within: connection,
      transaction: (body) =>
        body({
          async get(id) {
            await connection.query("INSERT INTO mine (id) VALUES (?) ON DUPLICATE KEY UPDATE id = id", [id]);
            const text = "SELECT value, ts FROM mine WHERE id = ? FOR UPDATE";
            const [[row]] = await connection.query<(RowDataPacket & { value: number | null; ts: number })[]>(text, [
              id,
            ]);
            return row === undefined || row.value === null ? null : { value: row.value, ts: row.ts };
          },
          async set(id, { value, ts }) {
            await connection.query("UPDATE mine SET value = ?, ts = ? WHERE id = ?", [value, ts, id]);
          },
          delete: async (id) => void (await connection.query("DELETE FROM mine WHERE id = ?", [id])),
        }),
    });
  const configs = { order: { kind: "token bucket", rate: 7, period: 2 ** 40 } } as const;
  const connections = await Promise.all(Array.from({ length: 20 }, () => pool.getConnection()));
  await Promise.all(connections.map((connection) => connection.beginTransaction()));
  const order = async (connection: PoolConnection, key: string): Promise<boolean> => {
    const limits = defineLimits(configs, { store: storeIn(connection), now: () => 5000 });
    const { ok } = await limits.limit("order", { key });
    if (ok) await connection.query("INSERT INTO orders VALUES (?)", [key]);
    await connection.commit();
    return ok;
  };
  const decided = await Promise.all(connections.map((connection) => order(connection, "ann")));
  expect(decided.filter((ok) => ok)).toHaveLength(7);
  expect(await fixture.rows("SELECT COUNT(*) FROM orders")).toEqual([[7]]);
  for (const connection of connections) connection.release();
});

test("`query` of mysql2 rounds some doubles; its `execute` does not, and neither does the text of a state", async () => {
  const pool = fixture.pool();
  await fixture.rows("CREATE TABLE held (i INT, value DOUBLE, text VARCHAR(64))");
  // Of every digit, up to some 15,000.
  const values = Array.from({ length: 1000 }, (_, i) => (((i + 1) * (Math.sqrt(5) - 1)) / 8) * 100);
  for (const [i, value] of values.entries()) {
    await pool.query("INSERT INTO held VALUES (?, ?, ?)", [i, value, encodeText({ value, ts: 5000 })]);
  }
  type Held = RowDataPacket & { value: number; text: string };
  const [rounded] = await pool.query<Held[]>("SELECT value, text FROM held ORDER BY i");
  const [exact] = await pool.execute<Held[]>("SELECT value FROM held ORDER BY i");
  const off = rounded.filter(({ value }, i) => value !== values[i]).length;
  expect(off).toBeGreaterThanOrEqual(10);
  expect(off).toBeLessThanOrEqual(50);
  expect(exact.map(({ value }) => value)).toEqual(values);
  expect(rounded.map(({ text }) => decodeText(text).value)).toEqual(values);
});
