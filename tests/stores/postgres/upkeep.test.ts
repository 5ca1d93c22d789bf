import { expect, test } from "vitest";
import { Limit } from "../../../npm/tidegate/src/stores/index.ts";
import { type PostgresStore, postgres } from "../../../npm/tidegate/src/stores/postgres.ts";
import { stock, take, withServer } from "./fixture.ts";

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
  let asked = 0;
  const caller = async (first: number): Promise<void> => {
    // Each caller goes through keys of its own: no two meet on one row, and each call writes.
    for (let i = 0; asked < CALLS; i++) {
      asked++;
      const answer = await store.decide(take(limit, `${first + (i % 2)}`));
      if (!answer.ok) throw new Error("nothing may be denied here");
    }
  };
  await Promise.all(Array.from({ length: KEYS / 2 }, (_, i) => caller(i * 2)));
  await fixture.rows("SELECT pg_stat_force_next_flush()");
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
      // Nearly every update stays on its page (HOT), beside no index; what is dead is pruned as pages are visited.
      return updates >= CALLS * 0.99 && hot >= updates * 0.95 && dead <= KEYS * 50 && bytes <= 8_000_000;
    });
});

test("purge removes full rows of its limit, in slices, and nothing else", async () => {
  const store = fixture.store();
  const limit = new Limit("purge", { kind: "token bucket", rate: 10, period: 1000, capacity: 10 });
  const window = new Limit("purgew", { kind: "fixed window", rate: 10, period: 1000 });
  const near = new Limit("purge2", { kind: "token bucket", rate: 10, period: 1000, capacity: 10 });
  const sharded = new Limit("purges", { kind: "token bucket", rate: 10, period: 1000, capacity: 10, shards: 4 });
  const now = 1_763_640_000_000;
  const keys = Array.from({ length: 95 }, (_, i) => `${i}`);
  for (const one of [limit, window, near])
    await Promise.all(keys.map((key) => store.decide(take(one, key, 1 + (Number(key) % 10)), now)));
  await store.decide(take(limit, undefined, 1), now);
  await store.decide(take(sharded, "k", 10), now);
  // At each instant exactly those are gone that say no more than none.
  expect(await store.purge(limit, { slice: 10, now })).toBe(0);
  const half = now + 500;
  const full = await Promise.all(keys.map(async (key) => (await store.getValue(limit, key, half)).value >= 10));
  expect(await store.purge(limit, { slice: 7, now: half })).toBe(full.filter(Boolean).length + 1);
  expect(await rowsOf("purge:")).toBe(full.filter((is) => !is).length);
  for (const key of keys) expect((await store.getValue(limit, key, half)).value >= 10).toBe(full[Number(key)]);
  expect(await store.purge(limit, { slice: 1000, now: now + 1000 })).toBe(full.filter((is) => !is).length);
  expect(await rowsOf("purge:")).toBe(0);
  expect(await rowsOf("purge2:")).toBe(95);
  expect(await store.purge(window, { slice: 10, now: now - 1000 })).toBe(0);
  expect(await store.purge(window, { slice: 10, now: now + 2000 })).toBe(95);
  expect(await store.purge(sharded, { now: now + 999 })).toBe(0);
  expect(await store.purge(sharded, { now: now + 1000 })).toBe(4);
  await expect(store.purge(limit, { slice: 0 })).rejects.toThrow(
    "`slice` must be a whole number from 1 to 1000000; got 0",
  );
});

test("purge waits for nobody, and takes nothing from who is at work", async () => {
  const store: PostgresStore = postgres(fixture.pool());
  const limit = new Limit("busy", { kind: "token bucket", rate: 1000, period: 1000, capacity: 10 });
  const stocked = stock("busystock", 100_000);
  await Promise.all(Array.from({ length: 50 }, (_, i) => store.decide(take(limit, `${i}`))));
  await fixture.admin.query("BEGIN; UPDATE tidegate.states SET value = 0 WHERE id = 'busy:7'");
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(await store.purge(limit, { slice: 10 })).toBe(49);
  await fixture.admin.query("ROLLBACK");
  expect(await store.purge(limit)).toBe(1);
  // Takes, and purges of the same rows, at once: every grant is still there.
  let taken = 0;
  let purging = true;
  const purges = (async () => {
    while (purging) {
      await store.purge(limit, { slice: 5 });
      await store.purge(stocked, { slice: 5 });
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

test("sweep does all slices from SQL", async () => {
  const store = fixture.store();
  const limit = new Limit("sweep", { kind: "token bucket", rate: 1000, period: 1, capacity: 10 });
  await Promise.all(Array.from({ length: 100 }, (_, i) => store.decide(take(limit, `${i}`), 1000)));
  await fixture.admin.query("CALL tidegate.sweep('sweep', 1000, 1, 10, slice => 30)");
  expect(await rowsOf("sweep:")).toBe(0);
});
