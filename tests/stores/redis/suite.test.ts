/** The contract of a store, through every shape of client. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { createClient as createClient4, createCluster as createCluster4 } from "redis-4";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { Limit } from "tidegate/store";
import { redis, type RedisOptions } from "tidegate/redis";
import { storeSuite } from "tidegate/testing";
import { clustered, glideCluster, type Open, sentinels, single } from "./clients.ts";
import { RedisCluster, RedisServer, startSentinel } from "./server.ts";
import { corruptIn, storedIn, storedOn } from "./stored.ts";
import { few, vectors } from "../vectors.ts";

/** Many callers on one limit, by the server's own clock, through two stores: how many were granted of 100. */
async function granted(open: Open): Promise<number> {
  const limit = new Limit("exact", { kind: "token bucket", rate: 100, period: 2 ** 40 });
  const stores = [redis(open.client), redis(open.client, { rememberDenials: 0 })] as const;
  const caller = async (i: number) => {
    let had = 0;
    for (let n = 0; n < 8; n++) {
      const call = { op: "take", limit, key: "all", count: 1, reserve: false } as const;
      if ((await stores[((i + n) % 2) as 0 | 1].decide(call, undefined)).ok) had++;
    }
    return had;
  };
  const each = await Promise.all(Array.from({ length: 40 }, (_, i) => caller(i)));
  return each.reduce((sum, one) => sum + one, 0);
}

describe("one server", () => {
  let server: RedisServer;
  let probe: Redis;
  beforeAll(async () => {
    server = await RedisServer.start();
    probe = server.client();
  });
  afterAll(async () => {
    probe?.disconnect();
    await server?.stop();
  });

  const shapes: [string, (port: number) => Promise<Open>, RedisOptions][] = [
    ...Object.entries(single).map(([name, make]) => [name, make, {}] as [string, typeof make, RedisOptions]),
    ["ioredis Redis, remembering no denials", single["ioredis Redis"] as never, { rememberDenials: 0 }],
  ];
  describe.each(shapes)("%s", (name, make, options) => {
    let open: Open;
    beforeAll(async () => {
      open = await make(server.port);
    });
    afterAll(() => open?.close());
    storeSuite({
      test,
      describe,
      // A client that is set up differently carries the same, and one of version 4 text, as a REST client does.
      vectors: /pool|keyPrefix|redis 4/.test(name) ? few : vectors,
      create: async () => {
        await probe.flushall();
        return redis(open.client, options);
      },
      stored: () => storedOn(probe, name.includes("keyPrefix") ? "mine:" : ""),
      corrupt: () => (id) => probe.set(`${name.includes("keyPrefix") ? "mine:" : ""}tidegate:${id}`, "garbage"),
    });

    test("grants exactly the capacity by the server's clock", async () => {
      await probe.flushall();
      expect(await granted(open)).toBe(100);
    });
  });
});

describe("a cluster of three", () => {
  let cluster: RedisCluster;
  let probes: Redis[] = [];
  beforeAll(async () => {
    cluster = await RedisCluster.start(3, 0);
    probes = cluster.nodes.map((node) => node.client());
  });
  afterAll(async () => {
    for (const probe of probes) probe.disconnect();
    await cluster?.stop();
  });

  describe.each([...Object.entries(clustered), ["Valkey GLIDE cluster", glideCluster] as const])("%s", (name, make) => {
    // Which node decides is the client's choice; what it decides is the script's.
    const all = name.startsWith("ioredis") ? vectors : few;
    let open: Open;
    beforeAll(async () => {
      open = await make(cluster.nodes.map((node) => node.port));
    });
    afterAll(() => open?.close());
    const create = (options: RedisOptions) => async () => {
      await Promise.all(probes.map((probe) => probe.flushall()));
      return redis(open.client, options);
    };

    describe("all under one tag", () => {
      storeSuite({
        test,
        describe,
        vectors: all,
        create: create({ tag: () => "t" }),
        stored: () => storedIn(probes, "t"),
        corrupt: () => corruptIn(probes, "t"),
      });
    });
    describe("each key in its own slot", () => {
      storeSuite({
        test,
        describe,
        vectors: all,
        create: create({}),
        stored: () => storedIn(probes, undefined),
        corrupt: () => corruptIn(probes, undefined),
        refusesLimitAll: "no atomic step reaches across slots without a tag",
        shardsApart: "shards in different slots are taken from in parts, not spread evenly in one step",
      });
    });
    test("grants exactly the capacity by the servers' clocks", async () => {
      expect(await granted(open)).toBe(100);
    });
  });
});

describe("behind a sentinel", () => {
  test.each(Object.entries(sentinels))("%s: grants exactly the capacity", async (_, make) => {
    await using server = await RedisServer.start();
    await using sentinel = await startSentinel(server.port);
    const open = await make(sentinel.port);
    expect(await granted(open)).toBe(100);
    open.close();
  });
});

describe("a client that would not work is refused when the store is made", () => {
  test.each([
    ["an object", {}],
    ["node-redis 3, which replies by callbacks", { evalsha() {}, eval() {}, internal_send_command() {} }],
    ["node-redis 4 in its legacy mode, which replies by callbacks", createClient4({ legacyMode: true })],
    ["a cluster of node-redis 4, which sends a script to any server", createCluster4({ rootNodes: [{}] })],
    ["a transaction of node-redis 4", createClient4().multi()],
    ["a legacy client of node-redis, which replies by callbacks", createClient().legacy()],
    ["a transaction of node-redis", createClient().multi()],
    ["a pipeline of ioredis", new Redis({ lazyConnect: true }).pipeline()],
    ["Memcached's", { get() {}, set() {}, send() {}, connect() {} }],
  ])("%s", (_, client) => {
    expect(() => redis(client as never)).toThrow("`client` must be a Redis client: ioredis");
  });
});

test("the error of a server older than Redis 6.2 names that version", async () => {
  const message = "ERR Error running script (call to f_c7): @user_script:83: ERR syntax error";
  const evalsha = () => Promise.reject(new Error(message));
  const limits = defineLimits(
    { api: { kind: "token bucket", rate: 1, period: 1000 } },
    { store: redis({ evalsha, eval: evalsha }), log: false },
  );
  const { cause } = await limits.limit("api");
  expect(String(cause)).toContain(`failed: the server must be Redis 6.2 or newer (${message})`);
});
