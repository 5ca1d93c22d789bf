/** Exact totals: many stores of one process, and several processes, on one key. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { memcached } from "tidegate/memcached";
import { grantedTo } from "../takers.ts";
import { clients, type Open } from "./clients.ts";
import { running } from "../running.ts";
import { MemcachedServer } from "./server.ts";

const run = promisify(execFile);
const fixture = running(() => MemcachedServer.start());

const CALL = { op: "take", count: 1, reserve: false } as const;

describe("stores on connections of their own", () => {
  let opens: Open[] = [];
  beforeAll(() => {
    opens = Object.values(clients)
      .map((make) => make(fixture.server.address))
      .filter(({ namespace }) => namespace === "");
  });
  afterAll(() => {
    for (const open of opens) open.close();
  });

  test.each([1, 3])("grant exactly the capacity, with %i shards", async (shards) => {
    const limit = new Limit("stock", { kind: "token bucket", rate: 120, period: 2 ** 40, shards });
    const stores = Array.from({ length: 8 }, (_, i) =>
      memcached((opens[i % opens.length] as Open).client, { prefix: `of${shards}`, stepTimeout: 60_000 }),
    );
    const key = "hot";
    const each = await Promise.all(
      stores.map(async (store) => {
        let granted = 0;
        for (let i = 0; i < 10; i++) {
          const some = await Promise.all([1, 2, 3].map(() => store.decide({ ...CALL, limit, key }, undefined)));
          granted += some.filter(({ ok }) => ok).length;
        }
        return granted;
      }),
    );
    expect(each.reduce((sum, one) => sum + one, 0)).toBe(120);
    const left = await stores[0]?.getValue(limit, key, undefined);
    expect(left?.value).toBeCloseTo(0, 3);
  });

  test("concurrent calls on a key share one gets and one cas", async () => {
    const limit = new Limit("shared", { kind: "token bucket", rate: 10, period: 2 ** 40 });
    const store = memcached((opens[0] as Open).client, { prefix: "meet", stepTimeout: 60_000 });
    const counts = async (): Promise<number[]> => {
      const stats = await fixture.server.say("stats\r\n", /END\r\n$/);
      return ["cmd_get", "cmd_set"].map((name) => Number(new RegExp(`STAT ${name} (\\d+)`).exec(stats)?.[1]));
    };
    const [gets = 0, sets = 0] = await counts();
    const all = Array.from({ length: 30 }, () => store.decide({ ...CALL, limit, key: "k" }, undefined));
    expect((await Promise.all(all)).filter(({ ok }) => ok)).toHaveLength(10);
    expect(await counts()).toEqual([gets + 1, sets + 1]);
  });
});

test("limitAll decides one request, and refuses several before any token is taken", async () => {
  const open = (clients["memcached"] as (typeof clients)[string])(fixture.server.address);
  const store = memcached(open.client, { prefix: "all", stepTimeout: 60_000 });
  const limit = new Limit("pair", { kind: "token bucket", rate: 1, period: 2 ** 40 });
  const call = { ...CALL, limit, key: "k" };
  await expect(store.decideAll([call, call], 5000)).rejects.toThrow(
    "`requests` must be one request on Memcached, which has no atomic step on several keys; got 2",
  );
  expect(await store.decideAll([call], 5000)).toMatchObject({ ok: true, decisions: [{ ok: true, value: 0 }] });
  const denied = await store.decideAll([call], 6000);
  expect(denied).toMatchObject({ ok: false, retryAt: 5000 + 2 ** 40, retryAfter: 2 ** 40 - 1000 });
  open.close();
});

test("three processes grant exactly the capacity", async () => {
  const clients = ["memcached", "memcache-client", "memcached"];
  const takers = clients.map((client) => ["memcached", client, fixture.server.address, "processes", "160", "limit"]);
  expect(await grantedTo(takers)).toBe(300);
});

test("examples/memcached: searches run until no token is left", async () => {
  const program = fileURLToPath(new URL("../../../examples/memcached/main.mjs", import.meta.url));
  const env = { ...process.env, MEMCACHED: fixture.server.address };
  const { stdout } = await run(process.execPath, [program], { env });
  expect(stdout).toBe("tide found, 1 left\ngate found, 0 left\nweir slow down\n");
});
