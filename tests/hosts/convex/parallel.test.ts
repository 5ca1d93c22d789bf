/** Parallel calls inside one mutation, in convex-test: they grant what there is, and leave one row for each state. */
import { defineSchema, defineTable, mutationGeneric, queryGeneric } from "convex/server";
import { v } from "convex/values";
import { type Decision, defineLimits, HOUR, MINUTE } from "tidegate";
import { type ConvexDatabase, convex, purge, stateTable } from "tidegate/convex";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { inRuntime } from "../runtimes.ts";

interface Db extends ConvexDatabase {
  query(table: string): { collect(): Promise<Row[]> };
  insert(table: string, fields: object): Promise<unknown>;
}
interface Row {
  readonly id: string;
  readonly value: number;
  readonly ts: number;
}
type Body<T> = (limits: ReturnType<typeof limitsOn>, db: Db) => Promise<T>;
interface Convex {
  run<T>(body: (ctx: { db: Db }) => Promise<T>): Promise<T>;
  mutation(of: unknown, args: object): Promise<unknown>;
  query(of: unknown, args: object): Promise<unknown>;
}

const NOW = 1_800_000_000_000;
const configs = {
  one: { kind: "token bucket", rate: 10, period: MINUTE, capacity: 3 },
  two: { kind: "token bucket", rate: 10, period: MINUTE, capacity: 5 },
  hourly: { kind: "fixed window", rate: 3, period: HOUR, start: 0 },
  parts: { kind: "token bucket", rate: 12, period: MINUTE, shards: 3 },
} as const;
const key = "ann";
const limitsOn = (db: ConvexDatabase) => defineLimits(configs, { store: convex(db) });
const times = <T>(n: number, call: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: n }, call));
const granted = (all: readonly Pick<Decision, "ok">[]): number => all.filter(({ ok }) => ok).length;

/** What the mutation and the query of this test's module run. */
let body: Body<unknown>;
const run = ({ db }: { db: unknown }): Promise<unknown> => body(limitsOn(db as Db), db as Db);
const functions = { change: mutationGeneric(run), look: queryGeneric(run) };

await inRuntime("convex", async () => {
  const { convexTest } = (await import("convex-test" as string)) as {
    convexTest: (schema: unknown, modules: unknown) => Convex;
  };
  const { makeFunctionReference } = (await import("convex/server" as string)) as {
    makeFunctionReference: (name: string) => unknown;
  };
  let t: Convex;
  async function mutation<T>(of: Body<T>): Promise<T> {
    let result: T | undefined;
    body = async (limits, db) => {
      result = await of(limits, db);
    };
    await t.mutation(makeFunctionReference("functions:change"), {});
    return result as T;
  }
  async function query<T>(of: Body<T>): Promise<T> {
    let result: T | undefined;
    body = async (limits, db) => {
      result = await of(limits, db);
    };
    await t.query(makeFunctionReference("functions:look"), {});
    return result as T;
  }
  const rows = () => t.run(({ db }) => db.query("tidegate").collect());
  /** Rows as parallel calls on different objects leave them. */
  const insert = (id: string, value: number, count: number, ts = NOW) =>
    t.run(async ({ db }) => {
      for (let i = 0; i < count; i++) await db.insert("tidegate", { id, value, ts, dropAt: NOW + HOUR });
    });

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW });
    const schema = defineSchema({ tidegate: stateTable(defineTable, v) });
    const modules = { "./_generated/api.js": async () => ({}), "./functions.js": async () => functions };
    t = convexTest(schema, modules);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("a call that writes is rejected in a query, where ctx.db cannot write", async () => {
    const rule = "`db` must be a mutation's ctx.db for a call that writes; got a query's ctx.db";
    await expect(query((limits) => limits.limit("one", { key }))).rejects.toThrow(rule);
    await expect(query((limits) => limits.reset("one", { key }))).rejects.toThrow(rule);
  });

  describe("parallel calls in one mutation", () => {
    test.each(["one", "hourly"] as const)("ten calls on a new key of %s: 3 are granted, in one row", async (name) => {
      expect(granted(await mutation((limits) => times(10, () => limits.limit(name, { key }))))).toBe(3);
      expect(await rows()).toMatchObject([{ id: `${name}:ann`, value: 0 }]);
    });

    test("ten calls on a stored key: 2 are granted", async () => {
      await mutation((limits) => limits.limit("one", { key }));
      expect(granted(await mutation((limits) => times(10, () => limits.limit("one", { key }))))).toBe(2);
    });

    test("twenty calls on a limit of 3 shards: 12 are granted", async () => {
      expect(granted(await mutation((limits) => times(20, () => limits.limit("parts", { key }))))).toBe(12);
      expect((await rows()).map(({ id }) => id).sort()).toEqual(["parts/0:ann", "parts/1:ann", "parts/2:ann"]);
    });

    test("limitMany grants 3 of 5", async () => {
      const all = await mutation((limits) => limits.limitMany("one", ["ann", "ann", "ann", "ann", "ann"]));
      expect(granted(all)).toBe(3);
    });

    test("limitAll and limit on the same keys, in both orders: 3 and 5 tokens are taken in all", async () => {
      const both = [
        { name: "one", key },
        { name: "two", key },
      ] as const;
      const [alone, first, second] = await mutation((limits) =>
        Promise.all([
          times(2, () => limits.limit("two", { key })),
          times(2, () => limits.limitAll(both)),
          times(4, () => limits.limitAll([...both].reverse())),
        ]),
      );
      expect([granted(alone), granted(first), granted(second)]).toEqual([2, 2, 1]);
      expect((await rows()).map(({ id, value }) => [id, value])).toEqual([
        ["two:ann", 0],
        ["one:ann", 0],
      ]);
    });

    test("two limiters on one ctx.db grant 3 together", async () => {
      const all = await mutation((limits, db) => {
        const others = limitsOn(db);
        return Promise.all([
          times(5, () => limits.limit("one", { key })),
          times(5, () => others.limit("one", { key })),
        ]);
      });
      expect(granted(all.flat())).toBe(3);
      expect(await rows()).toHaveLength(1);
    });

    test("give, charge and reset among the calls: each sees what the call before it left", async () => {
      const values = await mutation(async (limits) => {
        const calls = [
          limits.limit("one", { key, count: 2 }),
          limits.give("one", { key }),
          limits.charge("one", { key, count: 5 }),
          limits.getValue("one", { key }),
          limits.reset("one", { key }).then(() => ({ value: "reset" })),
          limits.getValue("one", { key }),
        ];
        return (await Promise.all<{ value: unknown }>(calls)).map(({ value }) => value);
      });
      expect(values).toEqual([1, 2, -3, -3, "reset", 3]);
      expect(await rows()).toEqual([]);
    });

    test("a mutation that fails after parallel calls has taken nothing", async () => {
      const failing = mutation(async (limits) => {
        expect(granted(await times(10, () => limits.limit("one", { key })))).toBe(3);
        throw new Error("rolled back");
      });
      await expect(failing).rejects.toThrow("rolled back");
      expect(await rows()).toEqual([]);
      expect(granted(await mutation((limits) => times(10, () => limits.limit("one", { key }))))).toBe(3);
    });

    test("a call that fails does not hold up the calls behind it", async () => {
      await insert("one:ann", Number.NaN, 1);
      const [corrupt, other, reset, after] = await mutation((limits) =>
        Promise.allSettled([
          limits.limit("one", { key }),
          limits.limit("two", { key }),
          limits.reset("one", { key }),
          limits.limit("one", { key }),
        ]),
      );
      expect(corrupt).toMatchObject({ status: "rejected", reason: { code: "TIDEGATE_STORE" } });
      expect([other, reset, after]).toMatchObject([
        { value: { ok: true } },
        { status: "fulfilled" },
        { value: { ok: true } },
      ]);
    });
  });

  test("with `throws` a denial reaches the client as a ConvexError with `retryAt`, and rolls back", async () => {
    const denied = mutation(async (limits) => {
      await limits.limit("one", { key, count: 3 });
      await limits.limit("one", { key, throws: true });
    });
    // Convex sends `data` to the client where it recognizes a ConvexError.
    const data = { kind: "RateLimited", name: "one", retryAt: NOW + 6000, retryAfter: 6000 };
    await expect(denied).rejects.toMatchObject({ code: "TIDEGATE_RATE_LIMITED", data });
    await expect(denied).rejects.toSatisfy((error) => Symbol.for("ConvexError") in error);
    expect(await rows()).toEqual([]);
    const never = mutation((limits) => limits.limit("one", { key, count: 4, throws: true }));
    await expect(never).rejects.toMatchObject({ data: { kind: "RateLimited", name: "one" } });
  });

  test("purge deletes rows that have been full for a minute, and no others", async () => {
    await mutation((limits) => limits.limit("one", { key }));
    await mutation((limits) => limits.limit("two", { key, count: 5 }));
    // A token of `one` is back after 6 s, five of `two` after 30 s.
    vi.setSystemTime(NOW + 65_999);
    expect(await mutation((_, db) => purge(db))).toBe(0);
    vi.setSystemTime(NOW + 66_000);
    expect(await mutation((_, db) => purge(db))).toBe(1);
    expect((await rows()).map(({ id }) => id)).toEqual(["two:ann"]);
  });

  describe("several rows of one state", () => {
    test("are what all of them lack: ten tokens taken of 3 are 7 owed", async () => {
      await insert("one:ann", 2, 10);
      const denied = await mutation((limits) => limits.limit("one", { key }));
      // 8 tokens at 10 a minute.
      expect(denied).toMatchObject({ ok: false, value: -7, retryAfter: 48_000 });
      vi.setSystemTime(NOW + 47_999);
      expect((await mutation((limits) => limits.limit("one", { key }))).ok).toBe(false);
      vi.setSystemTime(NOW + 48_000);
      expect((await mutation((limits) => limits.limit("one", { key }))).ok).toBe(true);
    });

    test("become one row at the next write, and a denial leaves them", async () => {
      await insert("two:ann", 4, 3);
      expect((await mutation((limits) => limits.limit("two", { key, count: 3 }))).ok).toBe(false);
      expect(await rows()).toHaveLength(3);
      expect(await mutation((limits) => limits.limit("two", { key }))).toMatchObject({ ok: true, value: 1 });
      expect(await rows()).toMatchObject([{ id: "two:ann", value: 1, ts: NOW }]);
    });

    test("of a window, and of a shard, are read by the same rule", async () => {
      const start = Math.floor(NOW / HOUR) * HOUR;
      await insert("hourly:ann", 2, 2, start);
      expect(await mutation((limits) => limits.limit("hourly", { key }))).toMatchObject({ ok: true, value: 0 });
      await insert("parts/1:ann", 3, 2);
      expect((await mutation((limits) => limits.getValue("parts", { key }))).value).toBe(10);
      expect(granted(await mutation((limits) => times(20, () => limits.limit("parts", { key }))))).toBe(10);
      expect((await rows()).map(({ id }) => id).sort()).toEqual([
        "hourly:ann",
        "parts/0:ann",
        "parts/1:ann",
        "parts/2:ann",
      ]);
    });

    test("are deleted by reset, all of them", async () => {
      await insert("one:ann", 2, 10);
      await insert("one:bob", 2, 1);
      await mutation((limits) => limits.reset("one", { key }));
      expect(await rows()).toMatchObject([{ id: "one:bob" }]);
    });

    test("are read in a query, which writes nothing", async () => {
      await insert("two:ann", 4, 3);
      expect(await query((limits) => limits.check("two", { key, count: 3 }))).toMatchObject({ ok: false, value: 2 });
      expect(await query((limits) => limits.getValue("two", { key }))).toMatchObject({ value: 2, ts: NOW });
      expect(await rows()).toHaveLength(3);
    });

    test("with a ts a year ahead are no state; beside others they do not count", async () => {
      await insert("two:ann", 1, 2, NOW + 365 * 24 * HOUR);
      expect((await query((limits) => limits.getValue("two", { key }))).value).toBe(5);
      await insert("two:ann", 2, 1);
      expect(await mutation((limits) => limits.limit("two", { key }))).toMatchObject({ ok: true, value: 1 });
      expect(await rows()).toMatchObject([{ value: 1, ts: NOW }]);
    });
  });
});
