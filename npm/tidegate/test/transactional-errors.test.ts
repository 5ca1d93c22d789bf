/** What a transaction that fails concerns: one key, or the database. */
import { expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../src/index.ts";
import { transactional } from "../src/stores/index.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;

test("a failing transaction is a StoreError with its cause", async () => {
  const cause = new Error("deadlock");
  const store = transactional({ name: "rows", transaction: () => Promise.reject(cause) });
  const d = await defineLimits({ one: bucket }, { store }).limit("one", { key: "k" });
  expect(d.cause).toMatchObject({ message: 'rows: take of "one:k" failed: deadlock', cause });
});

test("of an error with a `cause`, the deprecated `parent` is not read: Sequelize 7 prints a warning", async () => {
  const reads = vi.fn(() => undefined);
  const cause = Object.assign(new Error("undone"), { cause: { code: "40001" } });
  Object.defineProperty(cause, "parent", { get: reads });
  const store = transactional({ name: "rows", transaction: () => Promise.reject(cause) });
  const d = await defineLimits({ one: bucket }, { store, log: false }).limit("one", { key: "k" });
  expect(d.cause).toMatchObject({ scope: "key" });
  expect(reads).not.toHaveBeenCalled();
});

test.each<[string, object]>([
  ["PostgreSQL: a serialization failure", { code: "40001" }],
  ["PostgreSQL: a deadlock, in Drizzle's error", { cause: { code: "40P01" } }],
  ["PostgreSQL: lock_timeout, in Sequelize's error", { parent: { code: "55P03" } }],
  ["MySQL: a deadlock", { code: "ER_LOCK_DEADLOCK", errno: 1213 }],
  ["MySQL: a lock wait, in TypeORM's error", { driverError: { code: "ER_LOCK_WAIT_TIMEOUT", errno: 1205 } }],
  ["MariaDB: a row that has changed", { code: "ER_CHECKREAD", errno: 1020 }],
  ["SQLite: a database that another transaction has locked", { code: "SQLITE_BUSY" }],
  ["SQLite: a write after a read that is out of date", { code: "SQLITE_BUSY_SNAPSHOT" }],
  ["node:sqlite: a database that is locked", { code: "ERR_SQLITE_ERROR", errcode: 5 }],
  ["node:sqlite: a write after a read that is out of date", { code: "ERR_SQLITE_ERROR", errcode: 517 }],
  ["Prisma: a conflict", { code: "P2034" }],
  ["Prisma: a conflict of a raw query", { code: "P2010", meta: { code: "40001" } }],
  [
    "Prisma: a conflict of a raw query of an adapter",
    { code: "P2010", meta: { driverAdapterError: { cause: { originalCode: "40001" } } } },
  ],
  [
    "Prisma: a deadlock of a raw query of its adapter of MariaDB",
    {
      code: "P2010",
      meta: { driverAdapterError: { cause: { originalCode: "1213", kind: "TransactionWriteConflict" } } },
    },
  ],
  ["PostgreSQL: a key with NUL", { code: "22021" }],
  ["PostgreSQL: a key that is too long, in Drizzle's error", { cause: { code: "22001" } }],
  ["MySQL: a key that is too long", { code: "ER_DATA_TOO_LONG", errno: 1406 }],
  ["MySQL: a key with an emoji in a column of utf8mb3", { code: "ER_TRUNCATED_WRONG_VALUE_FOR_FIELD", errno: 1366 }],
  ["Prisma: a key that is too long", { code: "P2000" }],
])("%s fails its key alone: calls on others go on", async (title, fields) => {
  const remedy = title.includes(": a key")
    ? "the column of the identity must hold every key, as one of bytes does"
    : "after a conflict `transaction` may run its argument again";
  const cause = Object.assign(new Error("undone"), fields);
  const lines: string[] = [];
  const store = transactional({
    name: "tx",
    transaction: (body) =>
      body({ get: (id) => (id === "one:hot" ? Promise.reject(cause) : null), set: () => {}, delete: () => {} }),
  });
  const log = { error: (line: string) => lines.push(line), info: (line: string) => lines.push(line) };
  const limits = defineLimits({ one: bucket }, { store, log });
  for (let i = 0; i < 10; i++) {
    const hot = await limits.limit("one", { key: "hot" });
    const reason = `tx: take of "one:hot" failed: undone; ${remedy}`;
    expect(hot).toMatchObject({ ok: false, degraded: true, cause: { scope: "key", message: reason } });
    expect((hot.cause as Error & { cause: Error }).cause.cause).toBe(cause);
  }
  expect(await limits.limit("one", { key: "calm" })).toMatchObject({ ok: true, remaining: 9 });
  expect(lines).toEqual([expect.stringContaining("calls on this key are denied")]);
});

test("an error about more than the key counts as the database's, and so does one whose causes are a circle", async () => {
  const circle: Error & { code?: string } = Object.assign(new Error("gone"), { code: "08006" });
  circle.cause = circle;
  const store = transactional({ name: "tx", transaction: () => Promise.reject(circle) });
  const { cause } = await defineLimits({ one: bucket }, { store, log: false }).limit("one", { key: "k" });
  expect(cause).toMatchObject({ scope: "store", cause: circle, message: 'tx: take of "one:k" failed: gone' });
  // A database of node:sqlite that is corrupt.
  Object.assign(circle, { code: "ERR_SQLITE_ERROR", errcode: 11 });
  const other = await defineLimits({ one: bucket }, { store, log: false }).limit("one", { key: "k" });
  expect(other.cause).toMatchObject({ scope: "store", cause: circle });
});
