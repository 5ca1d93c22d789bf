/** Through PgBouncer in transaction mode, where a session's statements run on any connection. */
import postgresJs from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Config, defineLimits } from "tidegate";
import { Limit } from "tidegate/store";
import { postgres, type PostgresOptions } from "tidegate/postgres";
import { granted, stock, take, withServer } from "./fixture.ts";
import { hasPgbouncer, startPgbouncer } from "./pgbouncer.ts";

if (!hasPgbouncer) console.warn("!!! THE TESTS THROUGH PGBOUNCER ARE NOT RUN: apt-get install pgbouncer");

describe.skipIf(!hasPgbouncer).each(["read committed", "serializable"])("PgBouncer, %s", (level) => {
  const fixture = withServer({ fsync: "off", default_transaction_isolation: level });
  const patient: PostgresOptions = { prepare: false, statementTimeout: 60_000 };
  let bouncer: Awaited<ReturnType<typeof startPgbouncer>>;
  beforeAll(async () => {
    bouncer = await startPgbouncer(fixture.server, 3);
  });
  afterAll(() => bouncer?.close());

  test("eight processes on one key over three connections grant exactly the capacity", async () => {
    const limit = stock("pooled", 300);
    const stores = Array.from({ length: 8 }, () => fixture.store(patient, { port: bouncer.port, max: 2 }));
    const decisions = await Promise.all(
      Array.from({ length: 60 }).flatMap(() => stores.map((store) => store.decide(take(limit, "k")))),
    );
    expect(granted(decisions)).toBe(300);
    expect((await stores[0]?.getValue(limit, "k"))?.value).toBeCloseTo(0, 6);
  });

  test("with prepared statements, the default, the error names the option, and no more than the capacity is granted", async () => {
    const limit = stock("prepared", 50);
    const stores = Array.from({ length: 6 }, () => fixture.store({}, { port: bouncer.port, max: 2 }));
    const calls = Array.from({ length: 20 }).flatMap(() => stores.map((store) => store.decide(take(limit, "k"))));
    const settled = await Promise.allSettled(calls);
    const reasons = settled.flatMap((result) => (result.status === "rejected" ? [String(result.reason)] : []));
    expect(reasons).not.toEqual([]);
    for (const reason of reasons) {
      expect(reason).toMatch(
        /prepared statement ".*" .*; behind a pooler in transaction mode, set the option prepare: false$/,
      );
    }
    expect(
      granted(settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []))),
    ).toBeLessThanOrEqual(50);
  });

  test("every operation works through postgres.js, also in a transaction of the caller", async () => {
    const { host, user, database } = fixture.server.options;
    const sql = postgresJs({ host, port: bouncer.port, user, database, prepare: false, onnotice: () => {} });
    const store = postgres(sql, patient);
    await store.migrate();
    const limit = new Limit("operations", { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 10 });
    expect((await store.decideAll([take(limit, "k", 4), take(limit, "l")])).ok).toBe(true);
    expect((await store.decide(take(limit, "k", 7))).ok).toBe(false);
    expect((await store.decide(take(limit, "k", 7, { reserve: true }))).reserved).toBe(true);
    expect((await store.decide(take(limit, "k", 5, { op: "give" }))).value).toBeCloseTo(4, 6);
    const undone = sql.begin(async (tx) => {
      expect((await store.within(tx).decide(take(limit, "k", 4))).ok).toBe(true);
      throw new Error("undo");
    });
    await expect(undone).rejects.toThrow("undo");
    expect((await store.getValue(limit, "k")).value).toBeCloseTo(4, 6);
    await store.reset(limit, "k");
    expect(await store.purge()).toBe(0);
    await sql.end();
  });

  test("no setting of a statement stays on the connection", async () => {
    const config: Config = { kind: "token bucket", rate: 10, period: 1000 };
    const limits = defineLimits(
      { settings: config },
      { store: fixture.store(patient, { port: bouncer.port, max: 1 }), timeout: 60_000 },
    );
    const pool = fixture.pool({ port: bouncer.port, max: 1 });
    for (let i = 0; i < 5; i++) {
      expect((await limits.limit("settings", { key: `${i}` })).degraded).toBeUndefined();
      const names = "current_setting('lock_timeout') AS lock, current_setting('enable_seqscan') AS seq";
      expect((await pool.query(`SELECT ${names}, current_setting('transaction_isolation') AS level`)).rows).toEqual([
        { lock: "0", seq: "on", level },
      ]);
    }
  });
});
