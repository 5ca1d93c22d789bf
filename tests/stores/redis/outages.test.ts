/** One key or one master that fails, beside others that do not; and what reaches a server after its deadline. */
import type { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { createClient, createClientPool, createCluster } from "redis";
import { createClient as createClient4 } from "redis-4";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { defineLimits } from "tidegate";
import { redis, type RestRedisLike } from "tidegate/redis";
import { slotOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import { freePort } from "../../support/ports.ts";
import { busyIsNoOutage } from "../busy.ts";
import { connectingSuite } from "../connecting.ts";
import { clustered, type Open, restLike, single } from "./clients.ts";
import { started } from "./fixture.ts";
import { RedisCluster, RedisServer } from "./server.ts";

/** A thousandth of a token comes back in a second. */
const HARDLY_ANY = 2 ** 40;
const limits = { api: { kind: "token bucket", rate: 1e6, period: HARDLY_ANY } } as const;

/** ms, for the drift of two clocks while a test runs. */
const DRIFT = 200;
/** ms, for calls whose answer the test needs. */
const PATIENCE = 60_000;

/** The shortest of 20 calls, ms: by so much the deadline that the server compares with may be late. */
async function shortestTrip(call: () => PromiseLike<{ degraded?: true }>): Promise<number> {
  let shortest = Infinity;
  for (let i = 0; i < 20; i++) {
    const sent = performance.now();
    expect((await call()).degraded).toBeUndefined();
    shortest = Math.min(shortest, performance.now() - sent);
  }
  return shortest;
}

async function opened(open: Promise<Open>): Promise<Open["client"]> {
  const { client, close } = await open;
  onTestFinished(close);
  return client;
}

describe.each(Object.entries(single))("%s", (_, make) => {
  test("a limit whose keys the ACL withholds degrades only its own calls, also in one turn with others", async () => {
    const server = await started();
    const admin = server.client();
    onTestFinished(() => admin.disconnect());
    const rights = ["+evalsha", "+eval", "+time", "+get", "+set", "+info"];
    await admin.call("ACL", "SETUSER", "default", "resetkeys", "~*tidegate:api*", "-@all", ...rights);
    const client = await opened(make(server.port));
    const lines: string[] = [];
    const log = { error: (line: string) => void lines.push(line), info: (line: string) => void lines.push(line) };
    const limiter = defineLimits({ ...limits, later: limits.api }, { store: redis(client), timeout: 60_000, log });
    for (let turn = 0; turn < 8; turn++) {
      const [first, withheld, both, second] = await Promise.all([
        limiter.limit("api", { key: "a" }),
        limiter.limit("later"),
        limiter.limitAll([{ name: "api", key: "a" }, { name: "later" }]),
        limiter.limit("api", { key: "b" }),
      ]);
      for (const { cause } of [withheld, both]) {
        expect(cause).toMatchObject({ scope: "key", message: expect.stringMatching(/no permissions to access/i) });
      }
      expect([first, second].map(({ remaining }) => remaining)).toEqual([1e6 - 1 - turn, 1e6 - 1 - turn]);
    }
    expect(lines).toEqual([expect.stringContaining("others only if they fail, too")]);
  });
});

test.each([
  "MOVED 3999 127.0.0.1:6381",
  "Too many Cluster redirections. Last error: ReplyError: MOVED 3999 127.0.0.1:6381",
  "Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request during rehashing of slot",
  "An error was signalled by the server: - TryAgain: Multiple keys request during rehashing of slot",
])("keys that have moved degrade only their own calls, also in one turn with others: %s", async (message) => {
  const server = await started();
  const client = server.client();
  onTestFinished(() => client.disconnect());
  const { eval: whole, evalsha } = restLike(client);
  const moved = (keys: string[]) => keys.some((key) => key.endsWith("moved"));
  const rest: RestRedisLike = {
    eval: (script, keys, args) => (moved(keys) ? Promise.reject(new Error(message)) : whole(script, keys, args)),
    evalsha: (sha, keys, args) => (moved(keys) ? Promise.reject(new Error(message)) : evalsha(sha, keys, args)),
  };
  const limiter = defineLimits(limits, { store: redis(rest), timeout: PATIENCE, log: false });
  for (let turn = 0; turn < 8; turn++) {
    const keys = ["moved", "here"];
    const [gone, here] = await Promise.all(keys.map((key) => limiter.limit("api", { key })));
    expect(gone?.cause).toMatchObject({ scope: "key" });
    expect(here).toMatchObject({ ok: true, remaining: 1e6 - 1 - turn });
  }
});

describe.each(Object.entries(single))("%s: what was denied at its deadline takes nothing later", (_, make) => {
  test("after the server was stopped and continues", async () => {
    const server = await started();
    const store = redis(await opened(make(server.port)));
    const limiter = defineLimits(limits, { store, timeout: 300, log: false });
    const patient = defineLimits(limits, { store, timeout: PATIENCE, log: false });
    // Round trips by which the server's clock is known to within the shortest of them.
    const trip = await shortestTrip(() => patient.check("api"));
    expect((await patient.limit("api")).ok).toBe(true);
    server.signal("SIGSTOP");
    const denied = await Promise.all([
      ...Array.from({ length: 20 }, () => limiter.limit("api")),
      limiter.limitAll([{ name: "api" }, { name: "api", key: "k" }]),
      limiter.charge("api", { count: 5 }),
    ]);
    expect(denied.every(({ degraded }) => degraded)).toBe(true);
    await sleep(trip + DRIFT);
    server.signal("SIGCONT");
    await vi.waitUntil(async () => !(await patient.check("api")).degraded, { timeout: 60_000 });
    expect(Math.round((await patient.getValue("api")).value)).toBe(1e6 - 1);
    expect(Math.round((await patient.getValue("api", { key: "k" })).value)).toBe(1e6);
  });

  test("although a limit with a longer timeout shares its script call", async () => {
    const server = await started();
    const store = redis(await opened(make(server.port)));
    const config = { short: { ...limits.api, timeout: 300 }, long: { ...limits.api, timeout: PATIENCE } };
    const limiter = defineLimits(config, { store, log: false });
    const trip = await shortestTrip(() => limiter.check("long"));
    server.signal("SIGSTOP");
    const long = limiter.limit("long");
    expect(await limiter.limit("short")).toMatchObject({ ok: false, degraded: true });
    await sleep(trip + DRIFT);
    server.signal("SIGCONT");
    expect(await long).toMatchObject({ ok: true });
    const patient = defineLimits(limits, { store, timeout: PATIENCE, log: false });
    expect((await patient.limit("api")).ok).toBe(true);
    const probe = server.client();
    onTestFinished(() => probe.disconnect());
    expect((await probe.keys("*")).map((key) => key.split("tidegate:")[1]).sort()).toEqual(["api", "long"]);
  });

  test("after this process was too busy to send it", async () => {
    const server = await started();
    const probe = server.client();
    onTestFinished(() => probe.disconnect());
    const limiter = defineLimits(limits, { store: redis(await opened(make(server.port))), timeout: 50, log: false });
    await vi.waitUntil(async () => !(await limiter.limit("api")).degraded, { timeout: 60_000 });
    await probe.config("RESETSTAT");
    const late = Promise.all([limiter.limit("api"), limiter.limitAll([{ name: "api", key: "k" }])]);
    const until = performance.now() + 60;
    while (performance.now() < until);
    expect((await late).map(({ degraded }) => degraded)).toEqual([true, true]);
    expect(await probe.info("commandstats")).not.toMatch(/cmdstat_eval/);
  });

  test("after this process was too busy to send many, and the server has not failed", async () => {
    const server = await started();
    await busyIsNoOutage(redis(await opened(make(server.port))));
  });
});

test("calls that ioredis queued without a connection take nothing once it has one", async () => {
  const port = await freePort();
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: () => 100, maxRetriesPerRequest: null });
  client.on("error", () => {});
  onTestFinished(() => client.disconnect());
  const limiter = defineLimits(limits, { store: redis(client), timeout: 50, log: false });
  const denied = await Promise.all(Array.from({ length: 20 }, () => limiter.limit("api")));
  expect(denied.every(({ degraded }) => degraded)).toBe(true);
  const server = await RedisServer.startOn(port);
  onTestFinished(() => server.stop());
  await client.ping();
  const probe = server.client();
  onTestFinished(() => probe.disconnect());
  expect(await probe.info("commandstats"), "ioredis does send it").toMatch(/cmdstat_eval/);
  expect(await probe.keys("*")).toEqual([]);
});

test.each([
  ["max retries per request", { maxRetriesPerRequest: 0 }],
  ["enableOfflineQueue", { enableOfflineQueue: false }],
])("an error of ioredis, %j, is logged with its connection's, which has the address", async (what, options) => {
  const port = await freePort();
  const client = new Redis({ host: "127.0.0.1", port, password: "secret", ...options });
  onTestFinished(() => client.disconnect());
  const failed = new Promise((resolve) => client.on("error", resolve));
  const store = redis(client);
  await failed;
  const lines: string[] = [];
  const log = { error: (line: string) => void lines.push(line), info: () => {} };
  await defineLimits(limits, { store, log }).limit("api");
  expect(lines).toEqual([expect.stringContaining(what)]);
  expect(lines[0]).toContain(`(the connection's last error: connect ECONNREFUSED 127.0.0.1:${port})`);
  expect(lines[0]).not.toContain("secret");
});

test("an error of ioredis on a connection that works does not have one of the time before it", async () => {
  const port = await freePort();
  const client = new Redis({ host: "127.0.0.1", port, commandTimeout: 200, retryStrategy: () => 20 });
  onTestFinished(() => client.disconnect());
  await new Promise((resolve) => client.on("error", resolve));
  await using server = await RedisServer.startOn(port);
  while (client.status !== "ready") await sleep(20);
  server.signal("SIGSTOP");
  const { cause } = await defineLimits(limits, { store: redis(client), log: false, timeout: 5000 }).limit("api");
  server.signal("SIGCONT");
  expect(String(cause)).toContain("Command timed out");
  expect(String(cause)).not.toContain("ECONNREFUSED");
});

test("an error of ioredis on a connection that the server closes does not have one of an outage before it", async () => {
  const port = await freePort();
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: () => 20 });
  onTestFinished(() => client.disconnect());
  await new Promise((resolve) => client.on("error", resolve));
  await using server = await RedisServer.startOn(port);
  while (client.status !== "ready") await sleep(20);
  const admin = server.client();
  onTestFinished(() => admin.disconnect());
  await admin.call("CLIENT", "PAUSE", PATIENCE, "WRITE");
  const call = defineLimits(limits, { store: redis(client), log: false, timeout: PATIENCE }).limit("api");
  while (!/^blocked_clients:1\b/m.test(await admin.info("clients"))) await sleep(20);
  await admin.call("CLIENT", "KILL", "TYPE", "normal");
  expect(String((await call).cause)).toMatch(/Command aborted due to connection close$/);
});

test.each([
  ["a client", () => createClient()],
  ["a client of version 4", () => createClient4()],
  ["a pool", () => createClientPool()],
  ["a cluster", () => createCluster({ rootNodes: [] })],
])("%s of node-redis that is not connected: the error names the call that connects it", async (_, make) => {
  const { cause } = await defineLimits(limits, { store: redis(make()), log: false }).limit("api");
  expect(String(cause)).toContain("The client is closed; await client.connect() before the first call, and close");
});

describe("a first call while the client connects", () => {
  const clients: Readonly<Record<string, (port: number) => Open>> = {
    ioredis: (port) => {
      const client = new Redis({ host: "127.0.0.1", port });
      client.on("error", () => {});
      return { client, close: () => client.disconnect() };
    },
    "ioredis, lazyConnect": (port) => {
      const client = new Redis({ host: "127.0.0.1", port, lazyConnect: true });
      client.on("error", () => {});
      return { client, close: () => client.disconnect() };
    },
    "node-redis": (port) => {
      const client = createClient({ socket: { host: "127.0.0.1", port } });
      client.on("error", () => {});
      void client.connect().catch(() => {});
      return { client, close: () => client.destroy() };
    },
    "node-redis 4": (port) => {
      const client = createClient4({ socket: { host: "127.0.0.1", port } });
      client.on("error", () => {});
      void client.connect().catch(() => {});
      return { client, close: () => void client.disconnect().catch(() => {}) };
    },
  };

  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server?.stop());

  describe.each(Object.entries(clients))("%s", (_, make) => {
    test("twenty stores on a client that has yet to connect add no more listeners to it than one", () => {
      const { client, close } = make(server.port);
      onTestFinished(close);
      const listeners = () => (client as unknown as EventEmitter).listenerCount("ready");
      redis(client);
      const ofOne = listeners();
      for (let i = 1; i < 20; i++) redis(client);
      expect(listeners()).toBe(ofOne);
    });

    connectingSuite(
      () => server.port,
      (port) => {
        const { client, close } = make(port);
        return { store: redis(client), close };
      },
    );
  });
});

test("a server whose clock is an hour ahead or behind does not degrade calls", async () => {
  const server = await started();
  const client = await opened((single["ioredis Redis"] as (port: number) => Promise<Open>)(server.port));
  vi.useFakeTimers({ toFake: ["Date"] });
  for (const skew of [-3_600_000, 3_600_000]) {
    vi.setSystemTime(performance.timeOrigin + performance.now() + skew);
    const limiter = defineLimits(limits, { store: redis(client), timeout: 60_000, log: false });
    for (let i = 0; i < 5; i++) expect((await limiter.limit("api")).degraded).toBeUndefined();
  }
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

test("a remembered denial does not count as an answer of a server that is down", async () => {
  const server = await started();
  const client = server.client();
  onTestFinished(() => client.disconnect());
  const lines: string[] = [];
  const keep = (line: string) => void lines.push(line);
  const few = { few: { kind: "token bucket", rate: 1, period: HARDLY_ANY } } as const;
  const store = redis(client, { rememberDenials: 60_000 });
  const limiter = defineLimits(few, { store, log: { error: keep, info: keep } });
  const patient = defineLimits(few, { store, timeout: PATIENCE });
  for (const ok of [true, false]) {
    expect(await patient.limit("few", { key: "denied" })).toMatchObject({ ok });
  }
  await server.kill();
  const causes = new Set<string>();
  for (let i = 0; i < 10; i++) {
    const { cause } = await limiter.limit("few", { key: `${i}` });
    causes.add((cause as Error).message.replace(/.*: /, ""));
    expect((await limiter.limit("few", { key: "denied" })).degraded).toBeUndefined();
  }
  expect(causes).toContain("it has failed repeatedly; calls go to it again later");
  expect(lines).toEqual([expect.stringContaining("until redis answers again")]);
});

describe.each(Object.entries(clustered))("%s", (_, make) => {
  test.each(["SIGSTOP", "SIGKILL"] as const)("a master after %s degrades no call on the others", async (signal) => {
    const cluster = await RedisCluster.start(3, 0, "--cluster-require-full-coverage", "no");
    onTestFinished(() => cluster.stop());
    const [stopped, ...healthy] = cluster.nodes as [RedisServer, ...RedisServer[]];
    const probe = (healthy[0] as RedisServer).client();
    onTestFinished(() => probe.disconnect());
    const [bad = "", ...good] = await keysOf(cluster, probe);
    const client = await opened(make(cluster.nodes.map(({ port }) => port)));
    const store = redis(client);
    const limiter = defineLimits(limits, { store, timeout: 1_000 });
    // On a slow machine too, only a call that waits for the stopped master runs into this timeout.
    const patient = defineLimits(limits, { store, timeout: PATIENCE });
    const trip = await shortestTrip(() => patient.check("api", { key: bad }));
    for (const key of [bad, ...good]) {
      expect((await patient.limit("api", { key })).degraded).toBeUndefined();
    }
    stopped.signal(signal);
    onTestFinished(() => stopped.signal("SIGCONT"));
    const degraded = { bad: 0, good: 0 };
    let calls = 0;
    let granted = 1;
    const until = performance.now() + 5_000;
    const isOver = () => performance.now() > until && calls > 500 && degraded.bad > 5;
    await Promise.all(
      [bad, ...good].flatMap((key) =>
        Array.from({ length: 8 }, async () => {
          while (!isOver()) {
            const answer = await (key === bad ? limiter : patient).limit("api", { key });
            calls++;
            if (key === bad && answer.degraded !== true) granted++;
            if (answer.degraded === true) degraded[key === bad ? "bad" : "good"]++;
            await sleep(5);
          }
        }),
      ),
    );
    expect(degraded.good).toBe(0);
    if (signal === "SIGKILL") return;
    await sleep(trip + DRIFT);
    stopped.signal("SIGCONT");
    await vi.waitUntil(async () => !(await patient.check("api", { key: bad })).degraded, { timeout: 60_000 });
    const { value } = await patient.getValue("api", { key: bad });
    expect(Math.round(value), "what was denied took nothing").toBe(1e6 - granted);
  });
});
