/** Mutations on the table, in convex-test: everything is consumed or rolled back with the mutation. */
import { defineSchema, defineTable, mutationGeneric } from "convex/server";
import { v } from "convex/values";
import { defineLimits, HOUR, isRateLimitError, MINUTE, SECOND } from "tidegate";
import { convex, stateTable } from "tidegate/convex";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { inRuntime } from "../runtimes.ts";

interface Convex {
  run<T>(body: (ctx: { db: Db }) => Promise<T>): Promise<T>;
}
interface Db {
  query(table: string): { collect(): Promise<unknown[]> };
  insert(table: string, fields: object): Promise<unknown>;
}

const schema = defineSchema({
  tidegate: stateTable(defineTable, v),
  messages: defineTable({ text: v.string() }),
});
const configs = {
  freeTrialSignUp: { kind: "fixed window", rate: 100, period: HOUR },
  sendMessage: { kind: "token bucket", rate: 10, period: MINUTE, capacity: 3 },
  failedLogins: { kind: "token bucket", rate: 10, period: HOUR },
  llmTokens: { kind: "token bucket", rate: 40_000, period: MINUTE, shards: 10, maxReserved: 40_000 },
} as const;

await inRuntime("convex", async () => {
  const name = "convex-test";
  const { convexTest } = (await import(name)) as { convexTest: (schema: unknown, modules: unknown) => Convex };
  let t: Convex;
  const within = <T>(body: (limits: ReturnType<typeof limitsOn>, db: Db) => Promise<T>): Promise<T> =>
    t.run(({ db }) => body(limitsOn(db), db));
  const limitsOn = (db: Db) => defineLimits(configs, { store: convex(db) });
  const rows = () => t.run(({ db }) => db.query("tidegate").collect());

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_800_000_000_000 });
    t = convexTest(schema, {
      "./_generated/api.js": async () => ({}),
      "./none.js": async () => ({ none: mutationGeneric(async () => {}) }),
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  describe("the article's examples", () => {
    test("sign-ups: a hundred an hour are granted to all users together", async () => {
      const answers: boolean[] = [];
      for (let i = 0; i < 101; i++) answers.push((await within((limits) => limits.limit("freeTrialSignUp"))).ok);
      expect(answers.filter(Boolean).length).toBe(100);
      expect((await rows()).length).toBe(1);
    });

    test("messages: each user is granted three at one time, then one in six seconds", async () => {
      const send = (key: string) => within((limits) => limits.limit("sendMessage", { key }));
      for (let i = 0; i < 3; i++) expect((await send("ann")).ok).toBe(true);
      const denied = await send("ann");
      expect(denied).toMatchObject({ ok: false, retryAfter: 6 * SECOND });
      expect((await send("bob")).ok).toBe(true);
      vi.setSystemTime(denied.retryAt as number);
      expect((await send("ann")).ok).toBe(true);
    });

    test("failed logins: only failures are counted, and a success forgets them", async () => {
      const login = (right: boolean) =>
        within(async (limits) => {
          if (!(await limits.check("failedLogins", { key: "ann" })).ok) return "locked";
          if (right) await limits.reset("failedLogins", { key: "ann" });
          else await limits.limit("failedLogins", { key: "ann" });
          return right ? "in" : "wrong";
        });
      for (let i = 0; i < 9; i++) expect(await login(false)).toBe("wrong");
      expect(await login(true)).toBe("in");
      expect(await rows()).toEqual([]);
      for (let i = 0; i < 10; i++) await login(false);
      expect(await login(true)).toBe("locked");
    });

    test("an LLM's tokens are reserved ahead of time, over shards", async () => {
      const first = await within((limits) => limits.limit("llmTokens", { count: 30_000 }));
      expect(first).toMatchObject({ ok: true, reserved: false });
      const later = await within((limits) => limits.limit("llmTokens", { count: 30_000, reserve: true }));
      expect(later).toMatchObject({ ok: true, reserved: true });
      expect(later.retryAfter).toBeGreaterThan(0);
      const { value } = await within((limits) => limits.getValue("llmTokens"));
      expect(value).toBeCloseTo(-20_000, 6);
    });
  });

  describe("in a transaction", () => {
    test("a mutation that fails has taken nothing, and with `throws` a denial is such a failure", async () => {
      const post = () =>
        within(async (limits, db) => {
          await db.insert("messages", { text: "hello" });
          await limits.limit("failedLogins", { key: "ann" });
          await limits.limit("sendMessage", { key: "ann", throws: true });
        });
      for (let i = 0; i < 3; i++) await post();
      const before = await rows();
      await expect(post()).rejects.toSatisfy(isRateLimitError);
      expect(await rows()).toEqual(before);
      expect((await t.run(({ db }) => db.query("messages").collect())).length).toBe(3);
    });

    test("limitAll takes from all or from none, and a denial or a check writes nothing", async () => {
      const both = () =>
        within((limits) => limits.limitAll([{ name: "failedLogins" }, { name: "sendMessage", count: 2 }]));
      expect((await both()).ok).toBe(true);
      const before = await rows();
      expect((await both()).ok).toBe(false);
      await within((limits) => limits.check("sendMessage"));
      expect(await rows()).toEqual(before);
    });

    test("lone surrogates stay different keys", async () => {
      const take = (key: string) => within((limits) => limits.limit("sendMessage", { key, count: 3 }));
      for (const key of ["\ud800", "\udc00", "\ufffd"]) expect((await take(key)).ok).toBe(true);
    });

    test("an error of the database is the mutation's, not a denial", async () => {
      const broken = {
        query: () => {
          throw new Error("gone");
        },
      };
      await expect(limitsOn(broken as never).limit("sendMessage")).rejects.toMatchObject({ code: "TIDEGATE_STORE" });
    });
  });
});
