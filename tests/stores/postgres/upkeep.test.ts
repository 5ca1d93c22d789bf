import { expect, test, vi } from "vitest";
import { Limit } from "tidegate/store";
import { postgres, type PostgresStore } from "tidegate/postgres";
import { PATIENT, stock, take, withServer } from "./fixture.ts";

const fixture = withServer({ fsync: "off", autovacuum_naptime: "1s" });

const rowsOf = async (prefix: string): Promise<number> => {
  const text = "SELECT count(*)::int AS n FROM tidegate.states WHERE substr(id, 1, length($1::bytea)) = $1";
  return (await fixture.rows(text, [Buffer.from(prefix)]))[0]?.["n"] as number;
};

test("a million updates leave a small table and few dead rows", { timeout: 300_000 }, async () => {
  const KEYS = 2000;
  const CALLS = 1_000_000;
  const store = fixture.store({ statements: 4, batch: 500, statementTimeout: 60_000 }, { max: 4 });
  const limit = new Limit("bloat", { kind: "token bucket", rate: 1e9, period: 1000 });
  let made = 0;
  const caller = async (first: number): Promise<void> => {
    // Each caller goes through keys of its own: no two meet on one row, and each call writes.
    for (let i = 0; made < CALLS; i++) {
      made++;
      const { ok } = await store.decide(take(limit, `${first + (i % 2)}`));
      if (!ok) throw new Error("nothing may be denied here");
    }
  };
  await Promise.all(Array.from({ length: KEYS / 2 }, (_, i) => caller(i * 2)));
  await expect
    .poll(
      async () => {
        const text =
          "SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS hot, n_dead_tup::int AS dead, pg_table_size('tidegate.states')::int AS bytes FROM pg_stat_user_tables WHERE schemaname = 'tidegate'";
        return (await fixture.rows(text))[0] as { updates: number; hot: number; dead: number; bytes: number };
      },
      { timeout: 30_000, interval: 500 },
    )
    .toSatisfy(({ updates, hot, dead, bytes }) => {
      // Most updates stay on their page (HOT), as none does where a column that changes has an index; what is dead is pruned as
      // pages are visited, save what a statement under way may see: on a busy machine up to a tenth went to another page.
      return updates >= CALLS * 0.99 && hot >= updates / 2 && dead <= KEYS * 50 && bytes <= 8_000_000;
    });
});

const HOUR = 3_600_000;

test("purge deletes the rows of every limit that have been full for an hour, in slices, and no others", async () => {
  const store = fixture.store();
  await fixture.rows("DELETE FROM tidegate.states");
  const bucket = new Limit("purge", { kind: "token bucket", rate: 10, period: 1000, capacity: 10 });
  const window = new Limit("purgew", { kind: "fixed window", rate: 10, period: 1000, start: 0 });
  const slow = new Limit("purges", { kind: "token bucket", rate: 5e-324, period: 2 ** 40, capacity: 10 });
  const now = 1_763_640_000_000;
  const keys = Array.from({ length: 95 }, (_, i) => `${i}`);
  for (const one of [bucket, window, slow]) {
    await Promise.all(keys.map((key) => store.decide(take(one, key, 1 + (Number(key) % 10)), now)));
  }
  await store.decideAll([take(bucket, undefined), take(slow, undefined)], now);
  expect(await store.purge({ slice: 10, now: now + HOUR })).toBe(0);
  // A bucket that lacks n tokens is full after n * 100 ms.
  const due = keys.filter((key) => 1 + (Number(key) % 10) <= 5).length + 1;
  expect(await store.purge({ slice: 7, now: now + HOUR + 500 })).toBe(due);
  for (const key of keys) {
    const full = (await store.getValue(bucket, key, now + 500)).value >= 10;
    const rows = await fixture.rows("SELECT FROM tidegate.states WHERE id = tidegate.id('purge', $1)", [key]);
    expect(rows.length, key).toBe(full ? 0 : 1);
  }
  expect(await store.purge({ now: now + HOUR + 1000 })).toBe(96 - due + 95);
  expect(await rowsOf("purges")).toBe(96);
  expect(await store.purge({ now: 2 ** 52 })).toBe(0);
  await expect(store.purge({ slice: 0 })).rejects.toThrow("`slice` must be an integer from 1 to 1000000; got 0");
});

test("new keys for ever leave a small table: calls that make rows delete old ones", async () => {
  await fixture.rows("DELETE FROM tidegate.states");
  const limit = new Limit("visitors", { kind: "token bucket", rate: 10, period: 1000 });
  // 20,000 rows that have been full for longer than an hour, and the keys of another 20,000 visitors.
  await fixture.rows(
    "INSERT INTO tidegate.states SELECT tidegate.id('visitors', 'old' || md5(i::text)), 9, 1e12, 1e12 FROM generate_series(1, 20000) i",
  );
  const store = fixture.store({ statementTimeout: 60_000 });
  let made = 0;
  const visits = () => Promise.all(Array.from({ length: 200 }, () => store.decide(take(limit, `new${made++}`))));
  while (made < 20_000) await visits();
  expect(await rowsOf("visitors:new")).toBe(20_000);
  // On a slow machine a slice takes as long as several turns, and more keys must come.
  const left = async () => {
    await visits();
    return rowsOf("visitors:old");
  };
  await expect.poll(left, { timeout: 60_000 }).toBeLessThan(5000);
});

test("a slice without a reply, as of a client that never settles what it sent to a server that is gone, is not the last", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const pool = fixture.pool();
  let slices = 0;
  const query = (text: string, values?: unknown[]): Promise<unknown> => {
    if (!text.includes(".purge(")) return pool.query(text, values);
    slices++;
    return new Promise(() => {});
  };
  const store = postgres({ query }, { statementTimeout: 200 });
  let made = 0;
  const visit = async (): Promise<number> => {
    // On a busy machine it may be given up.
    await store.decide(take(stock("gone", 10), `${made++}`)).catch(() => {});
    return slices;
  };
  await expect.poll(visit, { timeout: 10_000 }).toBeGreaterThan(1);
});

test("new keys by SQL alone delete old rows too", async () => {
  await fixture.rows("DELETE FROM tidegate.states");
  await fixture.rows(
    "INSERT INTO tidegate.states SELECT tidegate.id('sql', 'a' || md5(i::text)), 9, 1e12, 1e12 FROM generate_series(1, 5000) i",
  );
  for (let i = 0; i < 3000; i++)
    await fixture.rows("SELECT FROM tidegate.decide('take', 'sql', $1, 10, 1000)", [`new${i}`]);
  expect(await rowsOf("sql:new")).toBe(3000);
  // Of 128 calls one deletes, every other time 512 rows from the first id on, which are old. That fewer than two of 3000 do: once in 10,000.
  expect(await rowsOf("sql:a")).toBeLessThan(4000);
});

test("purge waits for no lock, and deletes no row that a concurrent call takes from", async () => {
  const store: PostgresStore = postgres(fixture.pool(), PATIENT);
  await fixture.rows("DELETE FROM tidegate.states");
  const limit = new Limit("busy", { kind: "token bucket", rate: 1000, period: 1000, capacity: 10 });
  const stocked = stock("busystock", 100_000);
  await Promise.all(Array.from({ length: 50 }, (_, i) => store.decide(take(limit, `${i}`))));
  await fixture.admin.query("BEGIN; UPDATE tidegate.states SET value = 0 WHERE id = 'busy:7'");
  await new Promise((resolve) => setTimeout(resolve, 30));
  const later = Date.now() + HOUR + 1000;
  expect(await store.purge({ slice: 10, now: later })).toBe(49);
  await fixture.admin.query("ROLLBACK");
  expect(await store.purge({ now: later })).toBe(1);
  // Takes, and purges of the same rows, at once: every grant is still there.
  let taken = 0;
  let purging = true;
  const purges = (async () => {
    while (purging) {
      await store.purge({ slice: 5, now: Date.now() + HOUR });
    }
  })();
  await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      for (let turn = 0; turn < 40; turn++) {
        const { ok } = await store.decideAll([take(limit, `${(i + turn) % 5}`), take(stocked, "k")]);
        if (ok) taken++;
        await store.decide(take(limit, `${i % 3}`));
      }
    }),
  );
  purging = false;
  await purges;
  expect((await store.getValue(stocked, "k")).value).toBeCloseTo(100_000 - taken, 3);
});

test("sweep purges the whole table from SQL", async () => {
  const store = fixture.store();
  const limit = new Limit("sweep", { kind: "token bucket", rate: 1000, period: 1, capacity: 10 });
  await Promise.all(Array.from({ length: 100 }, (_, i) => store.decide(take(limit, `${i}`), 1000)));
  await fixture.admin.query("CALL tidegate.sweep(30)");
  expect(await rowsOf("sweep:")).toBe(0);
  // Each slice is committed, which no transaction around it allows: else the locks of all would be held until the end.
  await fixture.admin.query("BEGIN");
  await expect(fixture.admin.query("CALL tidegate.sweep()")).rejects.toThrow("invalid transaction termination");
  await fixture.admin.query("ROLLBACK");
});
