/** One key or one master that fails, beside others that do not; and what reaches a server after its deadline. */
import type { Redis } from "ioredis";
import { afterEach, describe, expect, test } from "vitest";
import { defineLimits, HOUR } from "../../../npm/tidegate/src/index.ts";
import { redis } from "../../../npm/tidegate/src/stores/redis.ts";
import { slotOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import { clustered, type Open, single } from "./clients.ts";
import { RedisCluster, RedisServer } from "./server.ts";

const limits = { api: { kind: "token bucket", rate: 1e6, period: HOUR } } as const;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});
async function started(...args: string[]): Promise<RedisServer> {
  const server = await RedisServer.start(...args);
  cleanups.push(() => server.stop());
  return server;
}
async function opened(open: Promise<Open>): Promise<Open["client"]> {
  const { client, close } = await open;
  cleanups.push(close);
  return client;
}

describe.each(Object.entries(single))("%s", (name, make) => {
  test("one corrupt key costs the calls on it alone", async () => {
    const server = await started();
    const probe = server.client();
    cleanups.push(() => probe.disconnect());
    await probe.set(`${name.includes("keyPrefix") ? "mine:" : ""}tidegate:api:bad`, "not a state");
    const limiter = defineLimits(limits, { store: redis(await opened(make(server.port))), timeout: 10_000 });
    for (let turn = 0; turn < 20; turn++) {
      const keys = Array.from({ length: 50 }, (_, i) => (i < 10 ? `good${i}` : "bad"));
      const answers = await Promise.all(keys.map((key) => limiter.limit("api", { key })));
      const degraded = answers.map((answer) => answer.degraded === true);
      expect(degraded).toEqual(keys.map((key) => key === "bad"));
    }
  });
});

/** A key of each of these masters, in the order of the nodes. */
async function keysOf(cluster: RedisCluster, probe: Redis): Promise<string[]> {
  const slots = (await probe.cluster("SLOTS")) as unknown as [number, number, [string, number]][];
  const portOf = (key: string) => {
    const slot = slotOf(`tidegate:api:${key}`);
    return slots.find(([from, to]) => slot >= from && slot <= to)?.[2][1];
  };
  return cluster.nodes.map(({ port }) => {
    for (let i = 0; ; i++) if (portOf(`k${i}`) === port) return `k${i}`;
  });
}

describe.each(Object.entries(clustered))("%s", (_, make) => {
  test.each(["SIGSTOP", "SIGKILL"] as const)("a master after %s costs no call on the others", async (signal) => {
    const cluster = await RedisCluster.start(3, 0, "--cluster-require-full-coverage", "no");
    cleanups.push(() => cluster.stop());
    const [stopped, ...healthy] = cluster.nodes as [RedisServer, ...RedisServer[]];
    const probe = (healthy[0] as RedisServer).client();
    cleanups.push(() => probe.disconnect());
    const [bad = "", ...good] = await keysOf(cluster, probe);
    const client = await opened(make(cluster.nodes.map(({ port }) => port)));
    const limiter = defineLimits(limits, { store: redis(client), timeout: 1_000 });
    for (const key of [bad, ...good]) expect((await limiter.limit("api", { key })).degraded).toBeUndefined();
    stopped.signal(signal);
    cleanups.push(() => stopped.signal("SIGCONT"));
    const degraded = { bad: 0, good: 0 };
    let calls = 0;
    const until = performance.now() + 5_000;
    await Promise.all(
      [bad, ...good].flatMap((key) =>
        Array.from({ length: 8 }, async () => {
          while (performance.now() < until) {
            const answer = await limiter.limit("api", { key });
            calls++;
            if (answer.degraded === true) degraded[key === bad ? "bad" : "good"]++;
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        }),
      ),
    );
    expect(calls).toBeGreaterThan(500);
    expect(degraded.bad).toBeGreaterThan(5);
    expect(degraded.good).toBe(0);
  });
});
