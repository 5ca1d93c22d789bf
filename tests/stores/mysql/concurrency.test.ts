/** Exact totals: many stores of one process, and several processes, on one key. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { mysql } from "tidegate/mysql";
import { testExample } from "../example.ts";
import { grantedTo, OPERATIONS } from "../takers.ts";
import { clients, type Open } from "./clients.ts";
import { withServer } from "./fixture.ts";

const fixture = withServer();
const CALL = { op: "take", count: 1, reserve: false } as const;

describe("stores on pools of their own", () => {
  let opens: Open[] = [];
  beforeAll(() => {
    opens = Object.values(clients).map((make) => make(fixture.server));
  });
  afterAll(async () => {
    for (const open of opens) await open.close();
  });

  test.each([1, 3])("grant exactly the capacity, with %i shards", async (shards) => {
    const limit = new Limit("stock", { kind: "token bucket", rate: 120, period: 2 ** 40, shards });
    const stores = Array.from({ length: 6 }, (_, i) =>
      mysql((opens[i % opens.length] as Open).client, { table: `of${shards}` }),
    );
    const each = await Promise.all(
      stores.map(async (store) => {
        let granted = 0;
        for (let i = 0; i < 10; i++) {
          const some = await Promise.all([1, 2, 3].map(() => store.decide({ ...CALL, limit, key: "hot" }, undefined)));
          granted += some.filter(({ ok }) => ok).length;
        }
        return granted;
      }),
    );
    expect(each.reduce((sum, one) => sum + one, 0)).toBe(120);
    expect((await stores[0]?.getValue(limit, "hot", undefined))?.value).toBeCloseTo(0, 3);
  });

  test("concurrent calls on a key share one SELECT and one INSERT; limitAll is one of each", async () => {
    const limit = new Limit("shared", { kind: "token bucket", rate: 10, period: 2 ** 40 });
    const store = mysql((opens[0] as Open).client, { table: "batch" });
    await store.decide({ ...CALL, limit, key: "creates the table" }, undefined);
    const statements = async (): Promise<number[]> => {
      const counts = await fixture.rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_insert', 'Com_select')");
      return counts.map(([, count]) => Number(count));
    };
    const [inserts = 0, selects = 0] = await statements();
    const all = Array.from({ length: 30 }, () => store.decide({ ...CALL, limit, key: "k" }, undefined));
    expect((await Promise.all(all)).filter(({ ok }) => ok)).toHaveLength(10);
    expect(await statements()).toEqual([inserts + 1, selects + 1]);
    await store.decideAll(
      ["a", "b", "c"].map((key) => ({ ...CALL, limit, key })),
      undefined,
    );
    expect(await statements()).toEqual([inserts + 2, selects + 2]);
  });
});

describe("two processes", () => {
  test.each(OPERATIONS)("grant exactly the capacity (%s)", async (operation, capacity) => {
    const clients = ["mysql2/promise", "mariadb"];
    const takers = clients.map((client) => ["mysql", client, fixture.server.uri, operation, "240", operation]);
    expect(await grantedTo(takers)).toBe(capacity);
  });
});

testExample("mysql", () => ({ DATABASE_URL: fixture.server.uri }));
