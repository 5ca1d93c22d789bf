import { describe, expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { granted, stock, take, withServer } from "./fixture.ts";

const fixture = withServer({ fsync: "off", max_connections: 120 });
const levels = ["read committed", "repeatable read", "serializable"];
const at = (level: string) => ({ options: `-c default_transaction_isolation=${level.replace(" ", "\\ ")}` });

const deadlocks = async (): Promise<number> => {
  const [row] = await fixture.rows("SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()");
  return row?.["deadlocks"] as number;
};
const values = async (name: string): Promise<number[]> => {
  const text =
    "SELECT value FROM tidegate.states WHERE id = ANY ($1::bytea[]) OR substr(id, 1, length($2::bytea)) = $2";
  const ids = [Buffer.from(name)];
  return (await fixture.rows(text, [ids, Buffer.from(`${name}:`)])).map(({ value }) => value as number);
};
const shuffled = <T>(list: readonly T[]): T[] => {
  const all = [...list];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [all[i], all[j]] = [all[j] as T, all[i] as T];
  }
  return all;
};

describe.each(levels)("%s", (level) => {
  const tag = level.replace(" ", "-");
  // At higher levels every conflict undoes a statement: fewer writers show the same.
  const [stores, turns] = level === "read committed" ? [16, 25] : [4, 10];

  test("many processes on one key grant exactly the capacity", async () => {
    const limit = stock(`one-${tag}`, 300);
    const all = Array.from({ length: stores }, () =>
      fixture.store({ statementTimeout: 60_000 }, { max: 2, ...at(level) }),
    );
    const answers = await Promise.all(
      Array.from({ length: turns * 4 }).flatMap(() => all.map((store) => store.decide(take(limit, "k")))),
    );
    expect(granted(answers)).toBe(Math.min(300, answers.length));
    const [left] = await values(`one-${tag}`);
    expect(left).toBeCloseTo(300 - granted(answers), 6);
  });

  test("64 writers on three limits in any order never deadlock, and every token is accounted for", async () => {
    const before = await deadlocks();
    const limits = ["a", "b", "c"].map((name) => stock(`${name}-${tag}`, 100));
    const all = Array.from({ length: stores }, () =>
      fixture.store({ statementTimeout: 60_000 }, { max: 2, ...at(level) }),
    );
    let taken = 0;
    const writer = async (i: number): Promise<void> => {
      const store = all[i % all.length];
      for (let turn = 0; turn < (level === "read committed" ? 10 : 3); turn++) {
        const calls = shuffled(limits).map((limit) => take(limit, undefined, 0.25));
        const answer = await store?.decideAll(calls);
        if (answer?.ok) taken += 0.25;
      }
    };
    await Promise.all(Array.from({ length: 64 }, (_, i) => writer(i)));
    expect(taken).toBeGreaterThan(0);
    for (const { name } of limits) expect(await values(name)).toEqual([expect.closeTo(100 - taken, 6)]);
    expect(await deadlocks()).toBe(before);
  });
});

test("calls of every kind on the same fresh and old rows never deadlock", async () => {
  const before = await deadlocks();
  const all = Array.from({ length: 8 }, () => fixture.store({ statementTimeout: 60_000, batch: 16 }, { max: 3 }));
  for (let round = 0; round < 15; round++) {
    const limit = stock(`mixed${round}`, 1e6);
    const sharded = stock(`sharded${round}`, 1e6, { shards: 4 });
    const keys = Array.from({ length: 12 }, (_, i) => `${(i * 7) % 12}`);
    let taken = 0;
    const calls = all.flatMap((store) =>
      Array.from({ length: 40 }, async (_, i) => {
        const some = shuffled(keys).slice(0, 3);
        if (i % 4 === 0) {
          const answer = await store.decideAll([...some.map((key) => take(limit, key)), take(sharded, undefined)]);
          if (answer.ok) taken += 4;
        } else if (i % 4 === 1) {
          if ((await store.decide(take(sharded, undefined, 2))).ok) taken += 2;
        } else {
          if ((await store.decide(take(limit, some[0], 1, { reserve: i % 2 === 0 }))).ok) taken += 1;
        }
      }),
    );
    await Promise.all(calls);
    const [row] = await fixture.rows(
      "SELECT sum(1e6 - value) AS gone FROM tidegate.states WHERE id >= 'mixed' AND id < 'n' OR id >= 'sharded' AND id < 't'",
    );
    expect(row?.["gone"]).toBeCloseTo(taken, 3);
    await fixture.rows("DELETE FROM tidegate.states");
  }
  expect(await deadlocks()).toBe(before);
});

test("a limit with shards is one bucket: it loses nothing and mints nothing", async () => {
  const limit = stock("shards", 1000, { shards: 8 });
  const all = Array.from({ length: 8 }, () => fixture.store({ statementTimeout: 60_000 }, { max: 3 }));
  const answers = await Promise.all(
    Array.from({ length: 300 }).flatMap((_, i) =>
      all.map(async (store) => ({ count: (i % 9) + 1, ...(await store.decide(take(limit, "k", (i % 9) + 1))) })),
    ),
  );
  const taken = answers.filter(({ ok }) => ok).reduce((sum, { count }) => sum + count, 0);
  // Denied only where less was left: the least request takes the rest.
  expect(taken).toBe(1000);
  const rest = await all[0]?.getValue(limit, "k");
  expect(rest?.value).toBeCloseTo(0, 6);
});

test("eight sessions take single tokens from one key that refills: each token is granted once", async () => {
  // Emptied first, and an hour to refill: it is never full while they take, however slow the machine.
  const limit = new Limit("seed", { kind: "token bucket", rate: 100, period: 1000, capacity: 360_000 });
  const all = Array.from({ length: 8 }, () => fixture.store({ statementTimeout: 60_000 }, { max: 1 }));
  const { ts: first } = await fixture.store().decide(take(limit, "k", 360_000));
  let count = 0;
  const session = async (store: (typeof all)[number]): Promise<void> => {
    for (let i = 0; i < 300; i++) {
      if ((await store.decide(take(limit, "k"))).ok) count++;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  await Promise.all(all.map(session));
  expect(count).toBeGreaterThan(0);
  const [row] = await fixture.rows("SELECT value, ts FROM tidegate.states WHERE id = 'seed:k'");
  const stored = row as { value: number; ts: number };
  expect(stored.value + count).toBeCloseTo(((stored.ts - first) * 100) / 1000, 6);
});
