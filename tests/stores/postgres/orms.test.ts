/** The store on the clients of Prisma, Drizzle and Kysely, and inside their transactions. */
import { inspect } from "node:util";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleJs } from "drizzle-orm/postgres-js";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import postgresJs from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineLimits } from "tidegate";
import { migrate, type PostgresClient, postgres } from "tidegate/postgres";
import { LossyProxy } from "../../support/proxy.ts";
import { granted, PATIENT, STRANGE, stock, take, withServer } from "./fixture.ts";
import { prismaOn } from "./prisma.ts";

const fixture = withServer();

interface Orm {
  readonly client: PostgresClient;
  /** Runs `body` in a transaction of the ORM. */
  transaction(body: (tx: PostgresClient) => Promise<void>): Promise<unknown>;
  close(): unknown;
}

const orms: Readonly<Record<string, () => Promise<Orm>>> = {
  async Prisma() {
    const prisma = prismaOn(fixture.server.options);
    return { client: prisma, transaction: (body) => prisma.$transaction(body), close: () => prisma.$disconnect() };
  },
  async "Drizzle on pg"() {
    const db = drizzlePg(fixture.pool());
    return { client: db, transaction: (body) => db.transaction(body), close: () => {} };
  },
  async "Drizzle on postgres.js"() {
    const sql = postgresJs({ ...fixture.server.options, onnotice: () => {} });
    const db = drizzleJs(sql);
    return { client: db, transaction: (body) => db.transaction(body), close: () => sql.end() };
  },
  async Kysely() {
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: fixture.pool() }) });
    const on = (executor: Pick<typeof db, "executeQuery">): PostgresClient => ({
      query: (text, values = []) => executor.executeQuery(CompiledQuery.raw(text, values)),
    });
    return { client: on(db), transaction: (body) => db.transaction().execute((tx) => body(on(tx))), close: () => {} };
  },
};

describe.each(Object.entries(orms))("%s", (name, open) => {
  test("makes the schema, and decides as every client", async () => {
    const { client, close } = await open();
    await migrate(client);
    const store = postgres(client, PATIENT);
    const limit = stock(`${name.replaceAll(" ", "-")}.plain`, 10);
    expect((await store.decide(take(limit, "k", 8))).ok).toBe(true);
    expect((await store.decide(take(limit, "k", 5))).ok).toBe(false);
    expect((await store.decideAll([take(limit, "k", 2), take(limit, "l", 2)])).ok).toBe(true);
    await store.reset(limit, "l");
    expect((await store.getValue(limit, "l")).value).toBe(10);
    // One statement for all; every key has its own row.
    for (let left = 7; left > 0; left -= 3) {
      expect(granted(await Promise.all(STRANGE.map((key) => store.decide(take(limit, key, 3)))))).toBe(STRANGE.length);
      for (const key of STRANGE) expect((await store.getValue(limit, key)).value, key).toBeCloseTo(left, 6);
    }
    await close();
  });

  test("within a transaction: a rollback gives the tokens back, and a commit keeps them taken", async () => {
    const { client, transaction, close } = await open();
    await migrate(client);
    const store = postgres(client, PATIENT);
    const configs = { order: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 10 } } as const;
    const key = name;
    const outside = defineLimits(configs, { store, timeout: 60_000, now: () => 5000 });
    const body = async (tx: PostgresClient): Promise<void> => {
      const inside = defineLimits(configs, { store: store.within(tx), now: () => 5000 });
      expect(await Promise.all([1, 2].map((count) => inside.limit("order", { key, count })))).toMatchObject([
        { ok: true },
        { ok: true },
      ]);
    };
    const undone = transaction(async (tx) => {
      await body(tx);
      throw new Error("undo");
    });
    await expect(undone).rejects.toThrow("undo");
    expect((await outside.getValue("order", { key })).value).toBe(10);
    await transaction(body);
    expect((await outside.getValue("order", { key })).value).toBe(7);
    await close();
  });

  test("an error of the server is the driver's, however it is wrapped: the remedy, and a try again", async () => {
    const { client, transaction, close } = await open();
    const limit = stock(`${name.replaceAll(" ", "-")}.errors`, 10);
    const missing = await postgres(client, { ...PATIENT, schema: "absent" })
      .decide(take(limit, "k"))
      .catch((error: unknown) => error);
    expect(String(missing)).toContain('the schema "absent" is missing or older than this version: run npx tidegate');
    await migrate(client);
    const store = postgres(client, PATIENT);
    await store.decide(take(limit, "k"));
    await fixture.admin.query("BEGIN");
    await fixture.admin.query("SELECT FROM tidegate.states FOR UPDATE");
    const deadline = { at: performance.now() + 5000 };
    const [locked, beside] = await Promise.allSettled([
      store.decide(take(limit, "k"), undefined, deadline),
      store.decide(take(limit, "beside"), undefined, deadline),
    ]);
    await fixture.admin.query("COMMIT");
    expect(String(Object(locked).reason)).toContain("the row is locked by another transaction");
    expect(beside).toMatchObject({ status: "fulfilled", value: { ok: true } });
    await transaction(async (tx) => {
      const inside = postgres(client, { ...PATIENT, schema: "absent" }).within(tx);
      await expect(inside.decide(take(limit, "k"))).rejects.toThrow("npx tidegate migrate");
    }).catch(() => {});
    await close();
  });
});

test.each([
  ["pg", (port: number) => drizzlePg(fixture.pool({ port, max: 1 }))],
  ["postgres.js", (port: number) => drizzleJs(postgresJs({ ...fixture.server.options, port, max: 1 }))],
])(
  "Drizzle on %s whose connection is lost: the driver's reason, without the statement, which has keys",
  async (_, on) => {
    const proxy = await LossyProxy.start(fixture.server.port);
    onTestFinished(() => proxy.stop());
    await migrate(fixture.admin);
    const store = postgres(on(proxy.port), PATIENT);
    const limit = stock("lost", 10);
    await store.decide(take(limit, "ann"));
    proxy.lose = 1;
    const [{ reason }] = (await Promise.allSettled(["ann", "ben"].map((key) => store.decide(take(limit, key))))) as [
      PromiseRejectedResult,
    ];
    expect(reason).toMatchObject({ store: "postgres", message: expect.stringMatching(/terminated|ECONNRESET|CLOSED/) });
    expect(inspect(reason, { depth: 9 })).not.toMatch(/SELECT|ben/);
  },
);

test("Drizzle in a session where quotes have other rules: no key leaves its literal", async () => {
  const pool = fixture.pool({ max: 1, options: "-c standard_conforming_strings=off -c backslash_quote=off" });
  const store = postgres(drizzlePg(pool), PATIENT);
  const limit = stock("quotes", 10);
  for (const key of STRANGE) expect((await store.decide(take(limit, key, 3))).value, key).toBeCloseTo(7, 6);
});
