/** `transactional()` on MySQL inside the caller's own transactions, as its page describes it. */
import type { PoolConnection, RowDataPacket } from "mysql2/promise";
import { expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { transactional } from "tidegate/store";
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
