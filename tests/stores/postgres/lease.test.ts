/** Leases on a real database: several nodes on one key, each with a pool of its own. */
import { expect, test } from "vitest";
import { type Config, defineLimits } from "tidegate";
import type { PostgresStore } from "tidegate/postgres";
import { withServer } from "./fixture.ts";

const fixture = withServer({ fsync: "off" });
const config: Config = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 10_000 };
const timeout = 60_000;

/** The same store, counting the calls on it. */
function counted(store: PostgresStore): PostgresStore & { calls: number } {
  const decide = store.decide.bind(store);
  const watched = Object.assign(store, { calls: 0 });
  watched.decide = (call, now) => {
    watched.calls++;
    return decide(call, now);
  };
  return watched;
}

test("nodes on one key grant exactly the capacity, to the last token, and one call in a hundred reaches the database", async () => {
  const settings = { lease: true, statementTimeout: 60_000 };
  const stores = Array.from({ length: 3 }, () => counted(fixture.store(settings, { max: 2 })));
  const nodes = stores.map((store) => defineLimits({ leased: config }, { store, timeout }));
  let granted = 0;
  await Promise.all(
    nodes.map(async (node) => {
      for (let i = 0; i < 8000; i++) {
        const { ok, cause } = await node.limit("leased", { key: "everybody's" });
        if (cause !== undefined) throw cause;
        if (ok) granted++;
      }
    }),
  );
  const calls = stores.reduce((sum, store) => sum + store.calls, 0);
  await Promise.all(nodes.map((node) => node.release()));
  const plain = defineLimits({ leased: config }, { store: fixture.store(), timeout });
  const { value } = await plain.getValue("leased", { key: "everybody's" });
  expect(Math.floor(granted + value)).toBe(10_000);
  expect(calls).toBeLessThan(240);
});

test("inside a transaction nothing is leased: what it takes is its own until it commits", () => {
  const store = fixture.store({ lease: true });
  expect(store.lease).toBe(true);
  expect(store.within(fixture.admin).lease).toBeUndefined();
});
