import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Config } from "tidegate";
import { Limit, type Op } from "tidegate/store";
import { take, withServer } from "./fixture.ts";

const fixture = withServer();

interface Row {
  ok: boolean;
  value: number;
  ts: number;
  retry_at: number | null;
  now: number;
}
const decide = async (
  op: Op,
  name: string,
  key: string | null,
  config: Config,
  count: number,
  reserve: boolean,
  now: number | null,
): Promise<Row> => {
  const { rate, period, capacity, maxReserved } = config;
  const given = config.kind === "fixed window" ? (config.start ?? 0) : null;
  const start = given === "first request" ? Number.POSITIVE_INFINITY : given;
  const text = "SELECT * FROM tidegate.decide($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
  const values = [op, name, key, rate, period, capacity ?? null, start, count, reserve, maxReserved ?? null, now];
  return (await fixture.rows(text, values))[0] as unknown as Row;
};

test("decide in SQL returns what the core does, with an exact retry_at", async () => {
  const store = fixture.store();
  const configs: Config[] = [
    { kind: "token bucket", rate: 10, period: 1000 },
    { kind: "token bucket", rate: 3.3333333333333335, period: 999_983, capacity: 7.7, maxReserved: 20 },
    { kind: "token bucket", rate: 1e-9, period: 2 ** 40 },
    { kind: "token bucket", rate: 5, period: 60_000, capacity: 0 },
    { kind: "fixed window", rate: 5, period: 60_000, start: -123_457, maxReserved: 12 },
    { kind: "fixed window", rate: 0.3, period: 7, capacity: 9.9, start: 0 },
    { kind: "fixed window", rate: 5, period: 700, capacity: 9.5, maxReserved: 12, start: "first request" },
  ];
  const ops: Op[] = ["take", "take", "check", "give", "charge", "block"];
  let now = 1_763_640_000_000;
  let retries = 0;
  for (let i = 0; i < 1500; i++) {
    const config = configs[i % configs.length] as Config;
    const limit = new Limit(`sql${i % configs.length}`, config);
    const op = ops[Math.floor(Math.random() * ops.length)] as Op;
    const length = Math.min(Math.ceil(Math.random() * limit.policy.period * 3), 2 ** 40);
    const count = op === "block" ? length : Math.random() < 0.5 ? Math.floor(Math.random() * 6) : Math.random() * 9;
    const reserve = (op === "take" || op === "check") && Math.random() < 0.4;
    const before = await store.decide(take(limit, "k", 0, { op: "check", reserve: true }), now);
    const [stored] = await fixture.rows("SELECT value, ts FROM tidegate.states WHERE id = tidegate.id($1, 'k')", [
      limit.name,
    ]);
    expect(before.policy.name).toBe(limit.name);
    const state = stored === undefined ? null : { value: Number(stored["value"]), ts: Number(stored["ts"]) };
    const { decision } = limit.evaluate(state, { op, count, reserve }, now, { start: limit.start("k") });
    const row = await decide(op, limit.name, "k", config, count, reserve, now);
    expect(
      [row.ok, row.value, row.ts, row.retry_at, row.now],
      `${op} ${count} ${reserve} ${JSON.stringify(config)} ${JSON.stringify(state)} at ${now}`,
    ).toEqual([decision.ok, decision.value, decision.ts, decision.retryAt ?? null, now]);
    if (row.retry_at !== null) retries++;
    now += Math.floor(Math.random() * (i % 3 === 0 ? 100_000 : 300));
  }
  expect(retries).toBeGreaterThan(100);
});

test("in SQL too, an argument that is wrong is an error that names it, before anything is read", async () => {
  const bucket: Config = { kind: "token bucket", rate: 10, period: 1000 };
  const bad: [Partial<Config>, number, string, string][] = [
    [{}, -1, "take", '"count" must be a finite number of tokens from 0 to 1099511627776; got -1'],
    [{}, Number.NaN, "take", '"count" must be'],
    [{}, Number.POSITIVE_INFINITY, "take", '"count" must be'],
    [{ rate: 0 }, 1, "take", '"rate" must be'],
    [{ rate: Number.NaN }, 1, "take", '"rate" must be'],
    [{ rate: 2 ** 40 + 1, capacity: 10 }, 1, "take", '"rate" must be'],
    [{ period: 0 }, 1, "take", '"period" must be an integer of ms'],
    [{ period: 2 ** 40 + 1 }, 1, "take", '"period" must be an integer of ms'],
    [{ period: 1.5 }, 1, "take", '"period" must be an integer of ms'],
    [{ capacity: -1 }, 1, "take", '"capacity" must be'],
    [{ capacity: Number.NaN }, 1, "take", '"capacity" must be'],
    [{ capacity: 2 ** 40 + 1 }, 1, "take", '"capacity" must be'],
    [{}, 2 ** 40 + 1, "take", '"count" must be'],
    [{ maxReserved: -1 }, 1, "take", '"max_reserved" must be'],
    [{ maxReserved: 2 ** 40 + 1 }, 1, "take", '"max_reserved" must be'],
    [{ kind: "fixed window", start: 0.5 }, 1, "take", '"start" must be'],
    [{ kind: "fixed window", start: 2 ** 53 }, 1, "take", '"start" must be'],
    [{ maxReserved: Number.NaN }, 1, "take", '"max_reserved" must be'],
    [{}, 1, "steal", "\"op\" must be 'take', 'check', 'give', 'charge' or 'block'; got 'steal'"],
    [{}, 0, "block", "the length of a block must be an integer of ms from 1 to 1099511627776; got 0"],
    [{}, 1.5, "block", "the length of a block must be an integer of ms"],
    [{}, 2 ** 40 + 1, "block", "the length of a block must be an integer of ms"],
  ];
  // A row that exists has a path of its own.
  const at = 1_800_000_000_000;
  await decide("take", "made", "k", bucket, 1, false, at);
  for (const [change, count, op, message] of bad) {
    for (const name of ["bad", "made"]) {
      const config = { ...bucket, ...change } as Config;
      await expect(decide(op as Op, name, "k", config, count, false, at), name).rejects.toThrow(message);
    }
  }
  expect(await fixture.rows("SELECT value, ts FROM tidegate.states WHERE id = 'made:k'")).toEqual([
    { value: 9, ts: at },
  ]);
  await expect(decide("take", "a:b", "k", bucket, 1, false, null)).rejects.toThrow('"name" must be 1 to 64 characters');
  const oddKeys = [
    ["", "got 0 bytes"],
    ["é".repeat(513), "got 1026 bytes"],
  ] as const;
  for (const [key, got] of oddKeys) {
    const rule = `"key" must be 1 to 1024 bytes in UTF-8, or NULL for the limit as a whole; ${got}`;
    await expect(decide("take", "bad", key, bucket, 1, false, null)).rejects.toThrow(rule);
  }
  expect(await fixture.rows("SELECT FROM tidegate.states WHERE substr(id, 1, 3) = 'bad'")).toEqual([]);
});

test("in SQL too, a clock that is wrong is an error, and the row stays as it is", async () => {
  const bucket: Config = { kind: "token bucket", rate: 10, period: 1000 };
  const now = 1_800_000_000_000;
  await decide("take", "clock", "k", bucket, 1, false, now);
  for (const at of [Number.NaN, Number.POSITIVE_INFINITY, -1, 2 ** 52 + 1]) {
    const rule = '"at" must be ms since the Unix epoch from 0 to 4503599627370496; got';
    await expect(decide("take", "clock", "k", bucket, 1, false, at), `${at}`).rejects.toThrow(rule);
  }
  expect(await decide("take", "clock", "k", bucket, 1, false, now + 0.5)).toMatchObject({ ok: true, value: 8, now });
});

test("in SQL too, a state from a broken clock is ignored, and one that is not two finite numbers is an error", async () => {
  const now = 1_800_000_000_000;
  const store = (value: number | string, ts: number | string) =>
    fixture.rows(
      `INSERT INTO tidegate.states (id, value, ts) VALUES ('odd:k', $1, $2)
        ON CONFLICT (id) DO UPDATE SET value = excluded.value, ts = excluded.ts`,
      [value, ts],
    );
  const taken = () => decide("take", "odd", "k", { kind: "token bucket", rate: 10, period: 1000 }, 1, false, now);
  await store(5, now + 3_600_000);
  expect(await taken()).toMatchObject({ ok: true, value: 4, ts: now + 3_600_000 });
  await store(5, now + 3_600_001);
  expect(await taken()).toMatchObject({ ok: true, value: 9, ts: now });
  for (const [value, ts] of [
    ["NaN", now],
    ["Infinity", now],
    [5, "NaN"],
    [5, "-Infinity"],
  ] as const) {
    await store(value, ts);
    await expect(taken(), `${value} ${ts}`).rejects.toThrow('the state of "odd:k" is not two finite numbers');
  }
});

test("whichever call wrote it, a row has the time from which it is full", async () => {
  const store = fixture.store();
  const now = 1_800_000_000_000;
  const bucket: Config = { kind: "token bucket", rate: 10, period: 1000 };
  const fullAfter = async (id: string): Promise<number> => {
    const [row] = await fixture.rows("SELECT full_at FROM tidegate.states WHERE id = $1", [Buffer.from(id)]);
    return Number(row?.["full_at"]) - now;
  };
  for (const after of [200, 400]) {
    await decide("take", "full", "sql", bucket, 2, false, now);
    expect(await fullAfter("full:sql")).toBeCloseTo(after, 2);
    await store.decide(take(new Limit("full", bucket), "k", 2), now);
    expect(await fullAfter("full:k")).toBeCloseTo(after, 2);
  }
  await store.decide(take(new Limit("full", bucket), "k", 2, { op: "charge" }), now);
  expect(await fullAfter("full:k")).toBeCloseTo(600, 2);
  const window = new Limit("full", { kind: "fixed window", rate: 10, period: 1000, capacity: 30, start: 0 });
  for (const after of [1000, 2000]) {
    await store.decide(take(window, "w", 8), now);
    expect(await fullAfter("full:w")).toBe(after);
  }
});

test("numbers that are too small for a quotient of PostgreSQL are decided as any", async () => {
  const store = fixture.store();
  const [tiny, now] = [Number.MIN_VALUE, 1_800_000_000_000];
  const configs: Config[] = [
    { kind: "token bucket", rate: 3.3, period: 777, capacity: 0 },
    { kind: "token bucket", rate: 1000, period: 1, capacity: 3 * tiny, maxReserved: 9 * tiny },
    { kind: "fixed window", rate: 1000, period: 700, capacity: 3 * tiny, start: 0, maxReserved: 9 * tiny },
  ];
  for (const [i, config] of configs.entries()) {
    for (const op of ["take", "check", "charge", "charge", "take", "give"] as const) {
      for (const reserve of [false, op === "take"]) {
        const limit = new Limit(`tiny${i}`, config);
        const state = await store.getValue(limit, "k", now);
        const { decision } = limit.evaluate(state, { op, count: tiny, reserve }, now, { start: limit.start("k") });
        const expected = [decision.ok, decision.value, decision.retryAt ?? null];
        const byLibrary = await store.decide({ op, limit, key: "k", count: tiny, reserve }, now);
        expect([byLibrary.ok, byLibrary.value, byLibrary.retryAt ?? null], `${op} ${i}`).toEqual(expected);
        const bySql = await decide(op, `${limit.name}sql`, "k", config, tiny, reserve, now);
        expect([bySql.ok, bySql.value, bySql.retry_at], `SQL: ${op} ${i}`).toEqual(expected);
      }
    }
  }
});

test("the library and SQL share one row", async () => {
  const store = fixture.store();
  const config: Config = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 10 };
  const limit = new Limit("shared", config);
  await decide("take", "shared", "é", config, 3, false, null);
  expect((await store.decide(take(limit, "é", 2))).value).toBeCloseTo(5, 6);
  await decide("take", "shared", null, config, 1, false, null);
  expect((await store.getValue(limit, undefined)).value).toBeCloseTo(9, 6);
});

test("the guide's examples return the guide's rows", async () => {
  const text = readFileSync(new URL("decide.sql", import.meta.url), "utf8");
  const [one, each] = text.split(/;\s*\n/) as [string, string];
  expect(await fixture.rows(one)).toEqual([{ ok: true, value: 19, retry_at: null }]);
  expect(await fixture.rows(each)).toEqual([
    { id: "user 7", ok: true },
    { id: "user 8", ok: true },
  ]);
});

test("(decide(...)).* is an error that names what to write, and takes nothing", async () => {
  const call = "tidegate.decide('take', 'five', 'k', 1, 1099511627776, 10)";
  for (const text of [`SELECT (${call}).*`, `select 1, ( ${call} ).* from generate_series(1, 2)`]) {
    await expect(fixture.rows(text)).rejects.toMatchObject({
      code: "0A000",
      hint: expect.stringContaining("SELECT * FROM"),
    });
    // The fast path of a row that exists refuses it too.
    await fixture.rows(`SELECT * FROM ${call}`);
  }
  const [row] = await fixture.rows("SELECT value FROM tidegate.states WHERE id = 'five:k'");
  expect(row?.["value"]).toBeCloseTo(8, 1);
});

test("a key in the text of the statement, as psycopg2 writes it, may hold what calls decide five times", async () => {
  for (const [key, left] of [
    ["it''s )).*", 9],
    ["it''s )).*", 8],
    ["(tidegate.decide('''', a)).*", 9],
  ] as const) {
    const text = `SELECT value FROM tidegate.decide('take', 'text', '${key}', 1, 1099511627776, 10)`;
    expect(await fixture.rows(text)).toEqual([{ value: expect.closeTo(left, 1) }]);
    const twice = text.replace("value FROM tidegate", "(tidegate").concat(").*");
    await expect(fixture.rows(twice)).rejects.toMatchObject({ code: "0A000" });
  }
});

test("a session with standard_conforming_strings off calls decide too", async () => {
  const pool = fixture.pool({ max: 1, options: "-c standard_conforming_strings=off" });
  const call = "tidegate.decide('take', 'old', 'k', 1, 1099511627776, 10)";
  expect((await pool.query(`SELECT ok FROM ${call}`)).rows).toEqual([{ ok: true }]);
  await expect(pool.query(`SELECT ( ${call} ).*`)).rejects.toMatchObject({ code: "0A000" });
});

test("in SQL too, block denies until the ms at which it ends, and unblock ends it", async () => {
  const at = 1_763_640_000_000;
  const take = (now: number) =>
    fixture.rows(`SELECT ok, retry_at FROM tidegate.decide('take', 'sin', 'k', 10, 60000, at => ${now})`);
  const [blocked] = await fixture.rows(`SELECT * FROM tidegate.block('sin', 'k', 900000, 10, 60000, at => ${at})`);
  expect(blocked).toEqual({ value: -149, ts: at, retry_at: at + 900_000, now: at });
  expect(await take(at + 899_999)).toEqual([{ ok: false, retry_at: at + 900_000 }]);
  expect(await take(at + 900_000)).toEqual([{ ok: true, retry_at: null }]);
  await fixture.rows(`SELECT * FROM tidegate.block('sin', 'k', 900000, 10, 60000, at => ${at + 900_000})`);
  await fixture.rows("SELECT tidegate.unblock('sin', 'k')");
  expect(await take(at + 900_001)).toEqual([{ ok: true, retry_at: null }]);
});

test("a call by SQL that is denied writes nothing", async () => {
  await fixture.rows("SELECT * FROM tidegate.decide('take', 'free', 'k', 1, 1099511627776, 5, count => 5)");
  const version = () =>
    fixture.rows("SELECT ctid::text, xmin::text, xmax::text FROM tidegate.states WHERE id = 'free:k'");
  const before = await version();
  expect(await fixture.rows("SELECT ok FROM tidegate.decide('take', 'free', 'k', 1, 1099511627776, 5)")).toEqual([
    { ok: false },
  ]);
  expect(await version()).toEqual(before);
});

test("a call by SQL on a new key writes its row once, and a call that writes nothing locks none", async () => {
  // With a clock that is given, no call deletes rows that are full.
  const rest = `count => 4, at => ${Date.now()}`;
  const call = (op: string, key: string) =>
    fixture.rows(`SELECT ok FROM tidegate.decide('${op}', 'once', '${key}', 1, 1099511627776, 5, ${rest})`);
  const counters = async (): Promise<number[]> => {
    const text = `SELECT n_tup_ins::int, n_tup_upd::int, n_tup_del::int FROM pg_stat_xact_user_tables
      WHERE schemaname = 'tidegate' AND relname = 'states'`;
    return Object.values((await fixture.rows(text))[0] ?? {}) as number[];
  };
  /** Rows that were inserted, updated and deleted, and whether the transaction writes. */
  const written = async (op: string, key: string): Promise<unknown[]> => {
    await fixture.rows("BEGIN");
    const before = await counters();
    await call(op, key);
    const after = await counters();
    const [row] = await fixture.rows("SELECT txid_current_if_assigned() IS NOT NULL AS writes");
    await fixture.rows("COMMIT");
    return [...after.map((count, i) => count - (before[i] as number)), row?.["writes"]];
  };
  for (const [op, key] of [
    ["take", "k"],
    ["charge", "l"],
    ["block", "m"],
  ] as const) {
    expect(await written(op, key), op).toEqual([1, 0, 0, true]);
  }
  for (const [op, key] of [
    ["take", "k"],
    ["check", "k"],
    ["give", "n"],
  ] as const) {
    expect(await written(op, key), op).toEqual([0, 0, 0, false]);
  }
});

test("calls by SQL that make the same row at the same time are decided one after another", async () => {
  const pool = fixture.pool({ max: 8 });
  for (let key = 0; key < 40; key++) {
    const text = `SELECT ok FROM tidegate.decide('take', 'rush', '${key}', 1, 1099511627776, 5)`;
    const replies = await Promise.all(Array.from({ length: 8 }, () => pool.query(text)));
    expect(replies.filter(({ rows }) => rows[0]?.["ok"])).toHaveLength(5);
  }
});

test("a call that makes a row deletes old ones now and then: not by a clock that is given, and not where that may be a conflict", async () => {
  const chosen = async (): Promise<number> => {
    for (let seed = 0; ; seed += 1e-4) {
      const [row] = await fixture.rows("SELECT setseed($1), random() < 1 / 128.0 AS purges", [seed]);
      if (row?.["purges"]) return seed;
    }
  };
  const seed = await chosen();
  const old = async () => (await fixture.rows("SELECT FROM tidegate.states WHERE id = 'zz:old'")).length;
  await fixture.rows("INSERT INTO tidegate.states VALUES ('zz:old', 9, 1e12, 1e12)");
  const makesRow = async (key: string, at: string): Promise<void> => {
    await fixture.rows("SELECT setseed($1)", [seed]);
    await fixture.rows(`SELECT FROM tidegate.decide('take', 'now', $1, 10, 1000, at => ${at})`, [key]);
  };
  await makesRow("a", `${Date.now()}`);
  expect(await old()).toBe(1);
  await fixture.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await makesRow("b", "NULL");
  await fixture.rows("COMMIT");
  expect(await old()).toBe(1);
  await makesRow("c", "NULL");
  expect(await old()).toBe(0);
});
