import { drizzle } from "drizzle-orm/node-postgres";
import { drizzle as drizzleJs } from "drizzle-orm/postgres-js";
import { Client } from "pg";
import postgresJs from "postgres";
import { describe, expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { postgres, type PostgresStore } from "tidegate/postgres";
import type { Limit } from "tidegate/store";
import { PATIENT, stock, take, withServer } from "./fixture.ts";
import { prismaOn } from "./prisma.ts";

const fixture = withServer();

async function inTransaction(
  store: PostgresStore,
  begin: string,
  body: (bound: PostgresStore) => Promise<void>,
  end: "COMMIT" | "ROLLBACK",
): Promise<void> {
  const client = new Client(fixture.server.options);
  await client.connect();
  try {
    await client.query(begin);
    await body(store.within(client));
    await client.query(end);
  } finally {
    await client.end();
  }
}

describe.each(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])("in a transaction of the user's, %s", (level) => {
  const begin = `BEGIN ISOLATION LEVEL ${level}`;
  const name = level.replace(" ", "-").toLowerCase();

  test("a rollback gives the tokens back, and a commit keeps them taken", async () => {
    const store = fixture.store();
    const limit = stock(`tx-${name}`, 10);
    const sharded = stock(`txs-${name}`, 10, { shards: 3 });
    await store.decide(take(limit, "k", 1));
    const body = async (bound: PostgresStore): Promise<void> => {
      expect((await bound.decide(take(limit, "k", 4))).value).toBeCloseTo(5, 6);
      expect((await bound.decide(take(limit, "fresh", 4))).ok).toBe(true);
      expect((await bound.decideAll([take(limit, "k", 1), take(limit, "other", 1)])).ok).toBe(true);
      expect((await bound.decide(take(sharded, "k", 9))).ok).toBe(true);
      expect((await bound.decide(take(limit, "k", 100))).ok).toBe(false);
      await bound.reset(limit, "fresh");
      expect((await bound.getValue(limit, "k")).value).toBeCloseTo(4, 6);
    };
    await inTransaction(store, begin, body, "ROLLBACK");
    expect((await store.getValue(limit, "k")).value).toBeCloseTo(9, 6);
    expect((await store.getValue(limit, "other")).value).toBe(10);
    expect((await store.getValue(sharded, "k")).value).toBe(10);
    await inTransaction(store, begin, body, "COMMIT");
    expect((await store.getValue(limit, "k")).value).toBeCloseTo(4, 6);
    expect((await store.getValue(limit, "other")).value).toBeCloseTo(9, 6);
    expect((await store.getValue(sharded, "k")).value).toBeCloseTo(1, 6);
    expect((await store.getValue(limit, "fresh")).value).toBe(10);
  });
});

test("parallel calls in one transaction take exactly the capacity, and a rollback returns all of it", async () => {
  const store = fixture.store();
  const [limit, other] = [stock("parallel", 5), stock("beside", 10)];
  const body = async (bound: PostgresStore): Promise<void> => {
    const singles = await Promise.all([
      ...Array.from({ length: 4 }, () => bound.decide(take(limit, "k"))),
      ...Array.from({ length: 4 }, (_, i) => bound.decide(take(limit, `k${i}`, 5))),
      bound.decideAll([take(limit, "k"), take(other, "k")]),
      bound.decideAll([take(other, "k"), take(limit, "k")]),
    ]);
    expect(singles.map(({ ok }) => ok)).toEqual([...Array(9).fill(true), false]);
    expect((await bound.getValue(other, "k")).value).toBeCloseTo(9, 6);
  };
  await inTransaction(store, "BEGIN", body, "ROLLBACK");
  await inTransaction(store, "BEGIN", body, "COMMIT");
  expect((await store.getValue(limit, "k")).value).toBeCloseTo(0, 6);
  expect((await store.getValue(other, "k")).value).toBeCloseTo(9, 6);
});

test("a conflict inside the user's transaction rejects and is not retried: 40001 in the cause", async () => {
  const store = fixture.store();
  const limit = stock("conflict", 10);
  await store.decide(take(limit, "k"));
  const client = new Client(fixture.server.options);
  await client.connect();
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await client.query("SELECT 1");
  const bound = store.within(client);
  expect((await bound.decide(take(limit, "other"))).ok).toBe(true);
  await store.decide(take(limit, "k"));
  await expect(bound.decide(take(limit, "k"))).rejects.toMatchObject({
    code: "TIDEGATE_STORE",
    store: "postgres",
    operation: "take",
    identity: "conflict:k",
    cause: { code: "40001" },
  });
  await client.query("ROLLBACK");
  await client.end();
  expect((await store.getValue(limit, "other")).value).toBe(10);
});

test("of two transactions that wait for each other one rejects with 40P01, and the other continues", async () => {
  const store = fixture.store();
  const clients = [new Client(fixture.server.options), new Client(fixture.server.options)];
  const limits = [stock("left", 10), stock("right", 10)] as const;
  const bound = await Promise.all(
    clients.map(async (client) => {
      await client.connect();
      await client.query("BEGIN");
      return store.within(client);
    }),
  );
  await Promise.all(bound.map((own, i) => own.decide(take(limits[i] as Limit, "k"))));
  const crossed = bound.map((own, i) => own.decide(take(limits[1 - i] as Limit, "k")));
  const [refused, granted] = (await Promise.allSettled(crossed)).sort((a) => (a.status === "rejected" ? -1 : 1));
  expect(refused).toMatchObject({ status: "rejected", reason: { code: "TIDEGATE_STORE", cause: { code: "40P01" } } });
  expect(granted).toMatchObject({ status: "fulfilled", value: { ok: true } });
  await Promise.all(clients.map((client) => client.query("COMMIT").then(() => client.end())));
  // What the refused one took came back.
  expect((await store.getValue(limits[0], "k")).value + (await store.getValue(limits[1], "k")).value).toBeCloseTo(
    18,
    4,
  );
});

test("with `lock_timeout` in the transaction, a call on a locked row rejects, and the rollback does not wait for the row", async () => {
  const store = fixture.store();
  const limit = stock("held", 10);
  await store.decide(take(limit, "k"));
  const [holder, client] = [new Client(fixture.server.options), new Client(fixture.server.options)];
  await Promise.all([holder.connect(), client.connect()]);
  await holder.query("BEGIN");
  expect((await store.within(holder).decide(take(limit, "k"))).ok).toBe(true);
  await client.query("BEGIN; SET LOCAL lock_timeout = '50ms'");
  const bound = postgres(client, PATIENT).within(client);
  await expect(bound.decide(take(limit, "k"))).rejects.toMatchObject({ cause: { code: "55P03" } });
  await client.query("ROLLBACK");
  await holder.query("ROLLBACK");
  await Promise.all([holder.end(), client.end()]);
  expect((await store.getValue(limit, "k")).value).toBeCloseTo(9, 6);
});

test("what a limiter on the store within a transaction takes is rolled back with it", async () => {
  const store = fixture.store();
  const configs = { order: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 10 } } as const;
  const client = new Client(fixture.server.options);
  await client.connect();
  await client.query("BEGIN");
  const inside = defineLimits(configs, { store: store.within(client) });
  expect((await inside.limit("order", { key: "k", count: 4 })).ok).toBe(true);
  await client.query("ROLLBACK");
  await client.end();
  const outside = defineLimits(configs, { store, timeout: 60_000 });
  expect((await outside.check("order", { key: "k", count: 10 })).ok).toBe(true);
});

test("postgres.js: what the store within sql.begin takes is rolled back or committed with it", async () => {
  const { host, port, user, database } = fixture.server.options;
  const sql = postgresJs({ host, port, user, database, onnotice: () => {} });
  const store = fixture.store();
  const limit = stock("begin", 10);
  const undone = sql.begin(async (tx) => {
    expect((await store.within(tx).decide(take(limit, "k", 4))).ok).toBe(true);
    throw new Error("undo");
  });
  await expect(undone).rejects.toThrow("undo");
  expect((await store.getValue(limit, "k")).value).toBe(10);
  await sql.begin(async (tx) => void (await store.within(tx).decide(take(limit, "k", 4))));
  expect((await store.getValue(limit, "k")).value).toBeCloseTo(6, 6);
  await sql.end();
});

test("the client that makes transactions is refused: what it takes would not roll back", async () => {
  const pool = fixture.pool();
  const sql = postgresJs({ ...fixture.server.options, onnotice: () => {} });
  const prisma = prismaOn(fixture.server.options);
  // As TypeORM's `DataSource`.
  const source = { query: async () => [], createQueryRunner: () => undefined };
  const store = postgres(pool, PATIENT);
  for (const client of [pool, sql, prisma, source, drizzle(pool), drizzleJs(sql)]) {
    expect(() => store.within(client)).toThrow("`client` must be the client that the transaction is on");
  }
  const reserved = await sql.reserve();
  const connection = await pool.connect();
  for (const client of [reserved, connection, drizzle(connection)]) {
    expect((await store.within(client).decide(take(stock("reserved", 10), "k"))).ok).toBe(true);
  }
  connection.release();
  reserved.release();
  await Promise.all([sql.end(), prisma.$disconnect()]);
});
