/** Sessions whose default is SERIALIZABLE, and deadlocks between other sessions: conflicts are not an outage. */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { expect, test } from "vitest";
import { type Config, defineLimits } from "tidegate";
import { withServer } from "./fixture.ts";

const fixture = withServer({ fsync: "off", default_transaction_isolation: "serializable", deadlock_timeout: "50ms" });
const plenty: Config = { kind: "token bucket", rate: 1e-9, period: 2 ** 40, capacity: 1e6 };
const taken = async (name: string): Promise<number> => {
  const text = "SELECT sum(1e6 - value) AS taken FROM tidegate.states WHERE substr(id, 1, $1) = $2";
  const [row] = await fixture.rows(text, [name.length + 1, Buffer.from(`${name}:`)]);
  return Math.round(row?.["taken"] as number);
};

test("eight pools on one key, 64 calls at a time each: every call is decided, and each grant taken once", async () => {
  const nodes = Array.from({ length: 8 }, () =>
    defineLimits({ hot: plenty }, { store: fixture.store({ statementTimeout: 120_000 }), timeout: 120_000 }),
  );
  const decisions = await Promise.all(
    nodes.flatMap((node) =>
      Array.from({ length: 64 }, async () => {
        const all = [];
        for (let i = 0; i < 10; i++) all.push(await node.limit("hot", { key: "k" }));
        return all;
      }),
    ),
  );
  const degraded = decisions.flat().filter((decision) => decision.degraded);
  expect(degraded.map(({ cause }) => String(cause))).toEqual([]);
  expect(await taken("hot")).toBe(8 * 64 * 10);
});

test("eight sessions that take a token every millisecond from one key: no decision is degraded", async () => {
  const nodes = Array.from({ length: 8 }, () =>
    defineLimits({ turns: plenty }, { store: fixture.store({}, { max: 1 }), timeout: 60_000 }),
  );
  const causes = await Promise.all(
    nodes.map(async (node) => {
      const seen: unknown[] = [];
      for (let i = 0; i < 200; i++) {
        const decision = await node.limit("turns", { key: "k" });
        if (decision.degraded) seen.push(String(decision.cause));
        await sleep(1);
      }
      return seen;
    }),
  );
  expect(causes.flat()).toEqual([]);
  expect(await taken("turns")).toBe(8 * 200);
});

test("several rows at once, in any order, from eight sessions: every call is decided", async () => {
  const configs = { a: plenty, b: plenty, c: plenty };
  const nodes = Array.from({ length: 8 }, () => defineLimits(configs, { store: fixture.store(), timeout: 60_000 }));
  const orders = [
    ["a", "b", "c"],
    ["c", "a", "b"],
    ["b", "c", "a"],
  ] as const;
  const decisions = await Promise.all(
    nodes.flatMap((node, n) =>
      Array.from({ length: 20 }, (_, i) => node.limitAll((orders[(n + i) % 3] ?? orders[0]).map((name) => ({ name })))),
    ),
  );
  expect(decisions.filter(({ degraded }) => degraded).map(({ cause }) => String(cause))).toEqual([]);
  const [row] = await fixture.rows("SELECT 1e6 - value AS taken FROM tidegate.states WHERE id = 'b'");
  expect(Math.round(row?.["taken"] as number)).toBe(160);
});

test("sessions that deadlock over two rows: calls on other rows go on, and what fails names only its key", async () => {
  const store = fixture.store();
  const limits = defineLimits({ dead: plenty }, { store, timeout: 1000 });
  // On a slow machine too, only a call that waits for the deadlock runs into this timeout.
  const patient = defineLimits({ dead: plenty }, { store, timeout: 60_000 });
  const keys = ["a", "b", ...Array.from({ length: 20 }, (_, i) => `k${i}`)];
  await Promise.all(keys.map((key) => patient.limit("dead", { key })));
  let deadlocks = 0;
  let stop = false;
  const rival = async (first: string, second: string): Promise<void> => {
    const client = new Client(fixture.server.options);
    await client.connect();
    const touch = (key: string) =>
      client.query("UPDATE tidegate.states SET value = value WHERE id = $1", [`dead:${key}`]);
    while (!stop) {
      await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
      try {
        await touch(first);
        await sleep(5);
        await touch(second);
        await client.query("COMMIT");
      } catch (error) {
        if ((error as { code?: unknown }).code === "40P01") deadlocks++;
        await client.query("ROLLBACK");
      }
    }
    await client.end();
  };
  const rivals = [rival("a", "b"), rival("b", "a")];
  const failed: { key: string; cause: unknown }[] = [];
  const caller = async (key: string, turns: number): Promise<void> => {
    for (let i = 0; i < turns || (turns === 0 && !stop); i++) {
      const decision = await (turns === 0 ? limits : patient).limit("dead", { key });
      if (decision.degraded) failed.push({ key, cause: decision.cause });
      await sleep(1);
    }
  };
  const onThem = [caller("a", 0), caller("b", 0)];
  await Promise.all(keys.slice(2).map((key) => caller(key, 150)));
  await expect.poll(() => deadlocks, { timeout: 60_000 }).toBeGreaterThan(2);
  stop = true;
  await Promise.all([...rivals, ...onThem]);
  expect(failed.filter(({ key }) => key.startsWith("k")).map(({ cause }) => String(cause))).toEqual([]);
  // Beside it, a server that was late may be the cause.
  const others = failed.filter(({ cause }) => !/no answer within|failed repeatedly/.test(String(cause)));
  for (const { cause } of others) expect(cause).toMatchObject({ code: "TIDEGATE_STORE", scope: "key" });
});
