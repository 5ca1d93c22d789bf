/** Servers that have no connection left. */
import { type Connection, createConnection } from "mysql2/promise";
import { expect, onTestFinished, test } from "vitest";
import { defineLimits, type Limiter } from "tidegate";
import type { AsyncStore } from "tidegate/store";
import { mysql } from "tidegate/mysql";
import { clients } from "./clients.ts";
import { withServer } from "./fixture.ts";

const fixture = withServer("--max-connections=10");
const limits = { stock: { kind: "token bucket", rate: 1e-9, period: 2 ** 40, capacity: 10 } } as const;

/** Takes all connections that are left, and returns them. */
async function takeAll(): Promise<Connection[]> {
  const taken: Connection[] = [];
  for (;;) {
    try {
      taken.push(await createConnection(fixture.server.options));
    } catch (error) {
      expect(error).toMatchObject({ errno: 1040 });
      return taken;
    }
  }
}

/** Twenty calls at one time, each on a key of its own, are granted. */
async function grants(limiter: Limiter<"stock", AsyncStore>): Promise<void> {
  const calls = Array.from({ length: 20 }, (_, i) => limiter.limit("stock", { key: `${i}` }));
  const causes = (await Promise.all(calls)).map(({ ok, cause }) => (ok ? undefined : `${cause}`));
  expect(causes).toEqual(calls.map(() => undefined));
}

test.each(Object.entries(clients))("%s: calls wait for the one connection that its pool has", async (table, make) => {
  const open = make(fixture.server);
  onTestFinished(() => void open.close());
  const store = mysql(open.client, { table: table.replace(/\W/g, "_") });
  const limiter = defineLimits(limits, { store, timeout: 60_000 });
  expect(await limiter.limit("stock", { key: "first" })).toMatchObject({ ok: true });
  const taken = await takeAll();
  onTestFinished(async () => void (await Promise.all(taken.map((connection) => connection.end()))));
  await grants(limiter);
});

test("an account that may have one connection: calls wait for it", async () => {
  await fixture.rows("CREATE USER one@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1");
  await fixture.rows("GRANT ALL ON test.* TO one@'127.0.0.1'");
  const limiter = defineLimits(limits, {
    store: mysql(fixture.pool({ user: "one" }), { table: "of_one" }),
    timeout: 60_000,
  });
  await grants(limiter);
});

test("without a free connection of the server, calls fail with its reason, as in an outage", async () => {
  const pool = fixture.pool();
  const taken = await takeAll();
  const limiter = defineLimits(limits, { store: mysql(pool), timeout: 500, log: false });
  const { cause } = await limiter.limit("stock", { key: "k" });
  expect(cause).toMatchObject({ scope: "store", message: expect.stringContaining("Too many connections") });
  await Promise.all(taken.map((connection) => connection.end()));
  await expect.poll(async () => (await limiter.limit("stock", { key: "k" })).ok, { timeout: 60_000 }).toBe(true);
});
