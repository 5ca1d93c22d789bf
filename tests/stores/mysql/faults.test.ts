/** Locked rows, deadlocks, and servers that fail, with default settings of the pool. */
import { inspect } from "node:util";
import { createConnection } from "mysql2/promise";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { defineLimits } from "tidegate";
import { Limit } from "tidegate/store";
import { mysql } from "tidegate/mysql";
import { outage } from "../outages.ts";
import { clients } from "./clients.ts";
import { withServer } from "./fixture.ts";
import { isMariadb } from "./server.ts";

const fixture = withServer();
const stock = { kind: "token bucket", rate: 1e-9, period: 2 ** 40, capacity: 10 } as const;
const configs = { stock, other: stock };

/** A transaction of another session. */
async function transaction() {
  const connection = await createConnection(fixture.server.options);
  onTestFinished(() => connection.end());
  await connection.query("BEGIN");
  return connection;
}

function subject(table: string, connectionLimit = 10) {
  const store = mysql(fixture.pool({ connectionLimit }), { table });
  return (timeout: number) => defineLimits(configs, { store, timeout, log: false });
}

const status = async (name: string): Promise<number> =>
  Number((await fixture.rows(`SHOW GLOBAL STATUS LIKE '${name}'`))[0]?.[1]);

/** Resolves once it holds. */
const until = (holds: () => Promise<boolean>) => vi.waitUntil(holds, { timeout: 60_000, interval: 20 });
const RUNNING = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO `late`%'";
const lockWait = () => until(async () => (await status("Innodb_row_lock_current_waits")) > 0);
/** Resolves with a function whose result is whether a statement has waited for a lock since. */
const lockWaits = async () => {
  const before = await status("Innodb_row_lock_waits");
  return async () => (await status("Innodb_row_lock_waits")) > before;
};
/** From here on the deadlines of calls pass only where the test says so, however slow the server is. */
const stopClock = () => vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });

describe("a row that another transaction has locked", () => {
  test("calls on it fail at their deadline and take nothing after it; other keys go on", async () => {
    const limiter = subject("a", 2);
    await limiter(60_000).limit("stock", { key: "k" });
    const other = await transaction();
    await other.query("SELECT * FROM a WHERE id = 'stock:k' FOR UPDATE");
    const waited = await lockWaits();
    for (let i = 0; i < 4 || !(await waited()); i++) {
      const late = await limiter(100).limit("stock", { key: "k" });
      expect(late.degraded).toBe(true);
      // Of two connections at most one waits for the lock.
      expect((await limiter(60_000).limit("stock", { key: `beside ${i}` })).degraded).toBeUndefined();
    }
    await other.query("COMMIT");
    const { value } = await limiter(60_000).limit("stock", { key: "k" });
    expect(value).toBe(8);
  });

  test("more of them than open the breaker: each call fails alone, the first one too, and other keys go on", async () => {
    const table = "many";
    const keys = 7;
    const store = mysql(fixture.pool(), { table });
    const patient = { ...stock, timeout: 60_000 } as const;
    const limits = defineLimits({ stock: { ...stock, timeout: 1000 }, patient }, { store, log: false });
    expect((await limits.limit("patient", { key: "k" })).degraded).toBeUndefined();
    const other = await transaction();
    for (let i = 0; i < keys; i++) await other.query(`INSERT INTO ${table} VALUES ('stock:${i}', NULL, 1)`);
    stopClock();
    for (let i = 0; i < keys; i++) {
      const waits = await lockWaits();
      const call = limits.limit("stock", { key: `${i}` });
      while (!(await waits()));
      await vi.advanceTimersByTimeAsync(1000);
      const { cause } = await call;
      expect(cause).toMatchObject({ scope: "key", message: expect.stringContaining("its row may be locked") });
    }
    expect(await limits.limit("patient", { key: "k" })).toMatchObject({ ok: true, value: 8 });
    await other.query("ROLLBACK");
  });

  test.each([
    ["a lock on the gap of an absent row", "SELECT * FROM late WHERE id = 'stock:k' FOR UPDATE"],
    ["an insert that is rolled back", "INSERT INTO late VALUES ('stock:k', '7 1', 1)"],
  ])("%s: calls that it kept waiting past their deadline take nothing", async (_, held) => {
    const limiter = subject("late");
    await limiter(60_000).check("stock", { key: "k" });
    const other = await transaction();
    await other.query(held);
    const both = [
      { name: "other", key: "first" },
      { name: "stock", key: "k" },
    ] as const;
    const waited = await lockWaits();
    // Until the write of one has reached the server before its deadline.
    while (!(await waited())) expect((await limiter(100).limitAll(both)).degraded).toBe(true);
    await other.query("ROLLBACK");
    await until(async () => (await fixture.rows(RUNNING))[0]?.[0] === 0);
    expect(await fixture.rows("SELECT HEX(id) FROM late")).toEqual([]);
  });

  test("a write that waits for it past the deadline of one of its calls takes nothing for that call", async () => {
    const store = mysql(fixture.pool(), { table: "mixed" });
    const call = { op: "take", limit: new Limit("stock", stock), key: "k", count: 1, reserve: false } as const;
    await store.decide(call, undefined);
    const other = await transaction();
    await other.query("SELECT * FROM mixed WHERE id = 'stock:k' FOR UPDATE");
    const now = performance.now();
    const [soon, later] = [2000, 60_000].map((ms) => store.decide(call, undefined, { at: now + ms }));
    const refused = expect(soon).rejects.toThrow(/its row may be locked|its deadline passed/);
    await lockWait();
    await until(async () => performance.now() > now + 2000);
    await other.query("COMMIT");
    await refused;
    expect(await later).toMatchObject({ ok: true, value: 8 });
  });

  test("a full one, which sweeps would delete, fails no call on other keys and occupies one connection", async () => {
    const store = mysql(fixture.pool({ connectionLimit: 3 }), { table: "full" });
    const limits = defineLimits(configs, { store, timeout: 5000, log: false });
    await limits.limit("stock", { key: "full" });
    await fixture.admin.query("UPDATE full SET drop_at = 1");
    const other = await transaction();
    await other.query("SELECT * FROM full WHERE id = 'stock:full' FOR UPDATE");
    const waits = await lockWaits();
    // More sweeps than the pool has connections.
    for (let round = 0; round < 5; round++) {
      const calls = Array.from({ length: 64 }, (_, i) => limits.limit("stock", { key: `${round} ${i}` }));
      expect((await Promise.all(calls)).flatMap(({ cause }) => cause ?? [])).toEqual([]);
    }
    expect(await waits()).toBe(true);
    await other.query("COMMIT");
  });

  test("a row that is deleted while a step has read it is read again", async () => {
    const limiter = subject("gone");
    await limiter(60_000).limit("stock", { key: "k", count: 4 });
    const other = await transaction();
    await other.query("DELETE FROM gone WHERE id = 'stock:k'");
    const taken = limiter(60_000).limit("stock", { key: "k" });
    await lockWait();
    await other.query("COMMIT");
    expect(await taken).toMatchObject({ ok: true, value: 9 });
  });

  test("calls on it alone, one after another, leave the other keys their decisions", async () => {
    const limiter = subject("alone", 4);
    const limits = limiter(100);
    await limiter(60_000).limit("stock", { key: "k" });
    const other = await transaction();
    await other.query("SELECT * FROM alone WHERE id = 'stock:k' FOR UPDATE");
    stopClock();
    for (let i = 0; i < 12; i++) {
      let hasEnded = false;
      const call = limits.limit("stock", { key: "k" }).finally(() => (hasEnded = true));
      // Each of its ms takes as long as the server needs to answer.
      while (!hasEnded) {
        await fixture.rows("SELECT 1");
        await vi.advanceTimersByTimeAsync(1);
      }
      expect((await call).degraded).toBe(true);
    }
    expect((await limits.limit("stock", { key: "beside" })).cause).toBeUndefined();
    await other.query("COMMIT");
  });

  /** That a statement which this setting ends, as this status counts, is retried until the deadline. */
  async function retried(variable: string, setting: number, count: string): Promise<void> {
    await fixture.admin.query(`SET GLOBAL ${variable} = ${setting}`);
    onTestFinished(async () => void (await fixture.admin.query(`SET GLOBAL ${variable} = DEFAULT`)));
    const limiter = subject(variable);
    await limiter(60_000).limit("stock", { key: "k" });
    const other = await transaction();
    await other.query(`SELECT * FROM ${variable} WHERE id = 'stock:k' FOR UPDATE`);
    const before = await status(count);
    let hasEnded = false;
    const taken = limiter(60_000)
      .limit("stock", { key: "k" })
      .finally(() => (hasEnded = true));
    // It has waited once, was refused, and waits again.
    await until(async () => hasEnded || (await status(count)) >= before + 2);
    await other.query("COMMIT");
    expect(await taken).toMatchObject({ ok: true, value: 8 });
  }

  test("a statement that ends with a lock wait timeout is retried until the deadline", () =>
    retried("innodb_lock_wait_timeout", 1, "Innodb_row_lock_waits"));

  // Statements of MariaDB alone have such a limit.
  test.runIf(isMariadb)("a statement that exceeds max_statement_time is retried until the deadline", () =>
    retried("max_statement_time", 0.1, "Max_statement_time_exceeded"),
  );

  test("a deadlock is retried", async () => {
    const limiter = subject("c");
    const both = ["1", "2"].map((key) => ({ name: "stock", key }) as const);
    await limiter(60_000).limitAll(both);
    const other = await transaction();
    // More work than the step's, so that the server ends the step.
    await other.query("INSERT INTO c SELECT CONCAT('x', UUID()), NULL, 1 FROM information_schema.collations LIMIT 100");
    await other.query("UPDATE c SET drop_at = drop_at WHERE id = 'stock:2'");
    await other.query("SELECT * FROM c WHERE id = 'stock:2' FOR UPDATE");
    const taken = limiter(60_000).limitAll(both);
    await lockWait();
    await other.query("SELECT * FROM c WHERE id = 'stock:1' FOR UPDATE");
    expect((await fixture.rows("SHOW ENGINE INNODB STATUS"))[0]?.[2]).toContain("LATEST DETECTED DEADLOCK");
    await other.query("COMMIT");
    const { ok, decisions } = await taken;
    expect([ok, ...decisions.map(({ value }) => value)]).toEqual([true, 8, 8]);
  });
});

test.each([
  ["1020: the row has changed", 1020],
  ["3101: the group has rolled it back", 3101],
])("a write that ends with error %s, is retried", async (_, errno) => {
  const pool = fixture.pool();
  const refused: unknown[] = [];
  const client = {
    execute() {},
    async query(options: { sql: string }, values: unknown[]): Promise<unknown> {
      if (!options.sql.startsWith("INSERT") || refused.length === 2) return pool.query(options, values);
      refused.push(errno);
      throw Object.assign(new Error(`error ${errno}`), { errno });
    },
  };
  const limiter = defineLimits(configs, { store: mysql(client as never, { table: "g" }), timeout: 60_000, log: false });
  expect((await limiter.limit("stock", { key: `${errno}` })).cause).toBeUndefined();
  expect(refused).toEqual([errno, errno]);
});

test.each(Object.entries(clients))("%s: an error has no statement, which has keys of others", async (_, make) => {
  await fixture.rows("CREATE OR REPLACE VIEW fixed AS SELECT 'x' AS id, NULL AS state, 0 AS drop_at");
  const open = make(fixture.server);
  onTestFinished(async () => {
    await open.close();
  });
  const store = mysql(open.client, { table: "fixed" });
  const { cause } = await defineLimits(configs, { store, timeout: 60_000, log: false }).limit("stock", { key: "k" });
  const { message } = cause as Error;
  expect(message).toMatch(
    /^mysql: take of "stock:k" failed: .*The target table fixed of the INSERT is not insertable-into$/,
  );
  expect(inspect(cause, { depth: 9 })).not.toMatch(/drop_at/);
});

test("a write that the server gets after the call's deadline takes nothing, on a key without a row too", async () => {
  await subject("e")(60_000).limit("stock", { key: "beside" });
  const pool = fixture.pool();
  const writes: (() => Promise<unknown>)[] = [];
  const client = {
    execute() {},
    query(options: { sql: string }, values: unknown[]): Promise<unknown> {
      const send = (): Promise<unknown> => pool.query(options, values);
      if (!options.sql.startsWith("INSERT")) return send();
      return new Promise((resolve, reject) => writes.push(() => send().then(resolve, reject)));
    },
  };
  const limiter = defineLimits(configs, { store: mysql(client as never, { table: "e" }), timeout: 200, log: false });
  while (writes.length === 0) expect((await limiter.limit("stock", { key: "k" })).degraded).toBe(true);
  for (const write of writes) await write();
  expect(await fixture.rows("SELECT id FROM e WHERE id = 'stock:k'")).toEqual([]);
});

test.each(["killed", "stopped"])(
  "a server that is %s: onStoreError decides, and the store when it is back",
  async (how) => outage(how, fixture.server, mysql(fixture.pool(), { table: "d" })),
);

test.each([
  ["queueLimit", { queueLimit: 1 }],
  ["waitForConnections", { waitForConnections: false }],
])("a pool of mysql2 that is full by its %s fails calls one by one, and is no outage", async (table, options) => {
  const pool = fixture.pool({ connectionLimit: 1, ...options });
  const limits = defineLimits(configs, { store: mysql(pool, { table }), timeout: 200, log: false });
  const patient = { ...stock, timeout: 60_000 } as const;
  expect((await limits.limit("other", { config: patient })).ok).toBe(true);
  const held = await pool.getConnection();
  const queued = "queueLimit" in options ? pool.query("SELECT 1") : undefined;
  for (let i = 0; i < 6; i++) {
    expect((await limits.limit("stock", { key: `k${i}` })).cause).toMatchObject({ scope: "key" });
  }
  held.release();
  await queued;
  const freed = await limits.limit("stock", { key: "k0", config: patient });
  expect(freed).toMatchObject({ ok: true, value: expect.closeTo(9, 3) });
});
