/** What the stores on an SQL table keep in it: rows, what denials leave, and the deletion of full states. */
import { expect, test } from "vitest";
import { type AsyncStore, defineLimits, HOUR, SECOND } from "tidegate";

export const limits = {
  login: { kind: "token bucket", rate: 2, period: HOUR },
  brief: { kind: "token bucket", rate: 1, period: SECOND },
  parts: { kind: "token bucket", rate: 4, period: HOUR, shards: 4 },
} as const;

interface Database {
  /** A store in this table. */
  store(table: string): AsyncStore;
  /** Its identities, states and times, by identity. */
  rows(table: string): Promise<readonly (readonly unknown[])[]>;
  run(sql: string): Promise<unknown>;
  /** Why a table without `id`, and one without `drop_at`, are no store's. */
  readonly reasons: readonly [id: string, dropAt: string];
}

export function testTable({ store, rows, run, reasons }: Database): void {
  const on = (table: string, now?: () => number) =>
    defineLimits(limits, { store: store(table), timeout: 60_000, log: false, now });
  const stopped = () => 5000;

  test("a grant is one row, a limit with shards too; a denial and a check write nothing", async () => {
    const limiter = on("a", stopped);
    await limiter.limit("login", { key: "k", count: 1.5 });
    await limiter.limit("parts", { count: 3 });
    const before = await rows("a");
    expect(before).toEqual([
      ["login:k", "0.5 5000", expect.any(Number)],
      ["parts", "1 5000", expect.any(Number)],
    ]);
    expect((await limiter.limit("login", { key: "k" })).ok).toBe(false);
    await limiter.check("login", { key: "k", count: 0.25 });
    await limiter.limitAll([{ name: "login", key: "k" }, { name: "parts" }]);
    expect(await rows("a")).toEqual(before);
  });

  test("a limit of which limitAll takes nothing keeps its row, and when that is deleted", async () => {
    const limiter = on("k", stopped);
    await limiter.limit("parts", { count: 3 });
    const before = await rows("k");
    await limiter.limitAll([
      { name: "login", key: "k" },
      { name: "parts", count: 0 },
    ]);
    expect(await rows("k")).toEqual([["login:k", "1 5000", expect.any(Number)], ...before]);
  });

  test.each([
    ["one", "user_id", reasons[0]],
    ["two", "id BLOB, state", reasons[1]],
  ])("a table with other columns is reported, with the remedy (%s: %s)", async (table, columns, reason) => {
    await run(`CREATE TABLE ${table} (${columns} VARCHAR(64))`);
    const { cause } = await on(table).limit("login", { key: "k" });
    expect(String(cause)).toContain(`the table ${table} is not a store's (${reason}`);
    expect(String(cause)).toContain("): give the store one of its own, such as");
  });

  test("writes delete full states, and no others", async () => {
    const limiter = on("c");
    await limiter.limit("brief", { key: "full" });
    await limiter.limit("login", { key: "kept" });
    await run("UPDATE c SET drop_at = 1 WHERE id = 'brief:full'");
    for (let i = 0; i < 70; i++) await limiter.limit("login", { key: `${i}` });
    const ids = (await rows("c")).map(([id]) => id);
    expect(ids).not.toContain("brief:full");
    expect(ids).toContain("login:kept");
    expect(ids).toHaveLength(71);
  });
}
