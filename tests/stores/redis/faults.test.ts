/** A limiter on servers that fail, as a user has it: default timeout, default breaker. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "vitest";
import type { Decision } from "tidegate/store";
import { defineLimits, type Limiter } from "tidegate";
import { redis, type RedisStore } from "tidegate/redis";
import { slotOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import { clustered, type Open, single } from "./clients.ts";
import { LossyProxy } from "./proxy.ts";
import { freePort } from "../../support/ports.ts";
import { RedisCluster, RedisServer } from "./server.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const TIMEOUT = 250;
/** Beyond the deadline a call may be late by what a busy machine lets its timers wait. */
const SLACK = 400;
const CAPACITY = 1e6;
/** A thousandth of a token comes back in a second. */
const limits = { load: { kind: "token bucket", rate: CAPACITY, period: 2 ** 40 } } as const;

type Subject = Limiter<"load", RedisStore>;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function started(...args: string[]): Promise<RedisServer> {
  const server = await RedisServer.start(...args);
  cleanups.push(() => server.stop());
  return server;
}

function subject(open: Open): Subject {
  cleanups.push(() => open.close());
  return defineLimits(limits, { store: redis(open.client) });
}

/** Calls one after another for `ms`, each within the deadline; returns how they went. */
async function load(limiter: Subject, ms: number) {
  const result = { granted: 0, degraded: [] as Decision[], longest: 0 };
  const until = performance.now() + ms;
  while (performance.now() < until) {
    const began = performance.now();
    const decision = await limiter.limit("load", { key: "k" });
    result.longest = Math.max(result.longest, performance.now() - began);
    if (decision.degraded) {
      result.degraded.push(decision);
      expect(decision.ok).toBe(false);
      expect(decision.cause).toMatchObject({ code: "TIDEGATE_STORE", store: "redis", identity: "load:k" });
    } else if (decision.ok) result.granted++;
    await sleep(2);
  }
  expect(result.longest).toBeLessThan(TIMEOUT + SLACK);
  return result;
}

/** Waits until the store itself answers again. */
async function resumes(limiter: Subject): Promise<number> {
  const began = performance.now();
  const granted = 0;
  for (;;) {
    const decision = await limiter.limit("load", { key: "k" });
    if (!decision.degraded) return decision.ok ? granted + 1 : granted;
    if (performance.now() - began > 20_000) throw new Error("the store never came back", { cause: decision.cause });
    await sleep(20);
  }
}

/** What the store says was taken lies between what was granted and that with all calls whose fate is unknown. */
async function nothingTwice(limiter: Subject, granted: number, unknown: number) {
  const taken = CAPACITY - (await limiter.getValue("load", { key: "k" })).value;
  expect(taken).toBeGreaterThan(granted - 0.5);
  expect(taken).toBeLessThan(granted + unknown + 0.5);
}

const shapes = (["ioredis Redis", "node-redis client"] as const).map(
  (name) => [name, single[name] as (port: number) => Promise<Open>] as const,
);

describe.each(shapes)("%s", (_, make) => {
  test("SIGKILL and restart: denied meanwhile, resumed without help", async () => {
    const server = await started();
    const limiter = subject(await make(server.port));
    expect((await load(limiter, 200)).degraded).toEqual([]);
    await server.kill();
    const down = await load(limiter, 700);
    expect(down.granted).toBe(0);
    expect(down.degraded.length).toBeGreaterThan(0);
    await server.up();
    await resumes(limiter);
  });

  test("a connection that breaks under load takes nothing twice", async () => {
    const server = await started();
    const limiter = subject(await make(server.port));
    const killer = server.client();
    cleanups.push(() => killer.disconnect());
    const breaking = setInterval(() => void killer.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), 100);
    cleanups.push(() => clearInterval(breaking));
    let granted = 0;
    let unknown = 0;
    const until = performance.now() + 1_500;
    await Promise.all(
      Array.from({ length: 30 }, async () => {
        while (performance.now() < until) {
          const decision = await limiter.limit("load", { key: "k" });
          if (decision.degraded) unknown++;
          else if (decision.ok) granted++;
          await sleep(1);
        }
      }),
    );
    clearInterval(breaking);
    granted += await resumes(limiter);
    expect(granted).toBeGreaterThan(100);
    await nothingTwice(limiter, granted, unknown);
  });

  test("an answer that is lost after the step was carried out is not requested again", async () => {
    const server = await started();
    const proxy = await LossyProxy.start(server.port);
    cleanups.push(() => proxy.stop());
    const limiter = subject(await make(proxy.port));
    let granted = await resumes(limiter);
    let unknown = 0;
    for (let i = 0; i < 5; i++) {
      proxy.lose = 1;
      const decision = await limiter.limit("load", { key: "k" });
      expect(decision).toMatchObject({ ok: false, degraded: true });
      unknown++;
      await sleep(300);
      granted += await resumes(limiter);
    }
    expect(proxy.lost).toBe(5);
    await nothingTwice(limiter, granted, unknown);
    // Each lost one was taken, once.
    const taken = CAPACITY - (await limiter.getValue("load", { key: "k" })).value;
    expect(Math.round(taken)).toBe(granted + 5);
  });

  test("SIGSTOP: a black hole costs the deadline, then nothing, and no memory", async () => {
    const server = await started();
    const limiter = subject(await make(server.port));
    const before = await load(limiter, 200);
    server.signal("SIGSTOP");
    const stopped = await load(limiter, 1_500);
    expect(stopped.granted).toBe(0);
    collect();
    const heap = process.memoryUsage().heapUsed;
    const burst = await Promise.all(Array.from({ length: 20_000 }, () => limiter.limit("load", { key: "k" })));
    expect(burst.every(({ degraded }) => degraded)).toBe(true);
    burst.length = 0;
    collect();
    expect(process.memoryUsage().heapUsed - heap).toBeLessThan(4e6);
    server.signal("SIGCONT");
    const more = await resumes(limiter);
    await nothingTwice(limiter, before.granted + more, stopped.degraded.length + 20_000);
  });

  test("CLIENT PAUSE", async () => {
    const server = await started();
    const limiter = subject(await make(server.port));
    const before = await load(limiter, 100);
    const pauser = server.client();
    cleanups.push(() => pauser.disconnect());
    await pauser.client("PAUSE", 900, "WRITE");
    const paused = await load(limiter, 600);
    expect(paused.degraded.length).toBeGreaterThan(0);
    const more = await resumes(limiter);
    await nothingTwice(limiter, before.granted + paused.granted + more, paused.degraded.length + 100);
  });

  test("a server that takes no writes: a read-only replica, one whose memory is full", async () => {
    const failing = async (port: number, what: RegExp) => {
      const limiter = subject(await make(port));
      const result = await load(limiter, 500);
      expect(result.granted).toBe(0);
      const causes = result.degraded.map(({ cause }) => (cause as Error).message).join("\n");
      expect(causes).toMatch(what);
    };
    const master = await started();
    const replica = await started("--replicaof", "127.0.0.1", `${master.port}`);
    await failing(replica.port, /READONLY/);

    const full = await started("--maxmemory", "1", "--maxmemory-policy", "noeviction");
    await failing(full.port, /OOM/);
    const admin = full.client();
    await admin.config("SET", "maxmemory", "0");
    admin.disconnect();
    await resumes(subject(await make(full.port)));
  });
});

test("wrong password: no call outlives its deadline, and none is granted", async () => {
  const server = await started("--requirepass", "secret");
  const limiter = subject(await (single["ioredis Redis"] as (port: number) => Promise<Open>)(server.port));
  const result = await load(limiter, 600);
  expect(result.granted).toBe(0);
  expect(result.degraded.length).toBeGreaterThan(0);
});

test("connection refused, then a server: resumed without help", async () => {
  const port = await freePort();
  const limiter = subject(await (single["ioredis Redis"] as (port: number) => Promise<Open>)(port));
  const result = await load(limiter, 600);
  expect(result.granted).toBe(0);
  expect(result.degraded.length).toBeGreaterThan(0);
  const server = await RedisServer.startOn(port);
  cleanups.push(() => server.stop());
  expect(await resumes(limiter)).toBe(1);
});

test("LOADING: denied until the data is there", async () => {
  const server = await started();
  const filler = server.client();
  const pipeline = filler.pipeline();
  for (let i = 0; i < 1_500; i++) pipeline.set(`filler:${i}`, "x".repeat(200));
  await pipeline.exec();
  await filler.save();
  filler.disconnect();
  await server.kill();
  server.launch("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024");
  const limiter = subject(await (single["ioredis Redis"] as (port: number) => Promise<Open>)(server.port));
  const loading = await load(limiter, 500);
  expect(loading.granted).toBe(0);
  expect(loading.degraded.length).toBeGreaterThan(0);
  await resumes(limiter);
});

test("onStoreError: allow, and a local fraction", async () => {
  const port = await freePort();
  const open = await (single["ioredis Redis"] as (port: number) => Promise<Open>)(port);
  cleanups.push(() => open.close());
  const allowing = defineLimits(limits, { store: redis(open.client), onStoreError: "allow" });
  expect(await allowing.limit("load", { key: "k" })).toMatchObject({ ok: true, degraded: true });
  const small = { load: { kind: "token bucket", rate: 10, period: 3_600_000 } } as const;
  const local = defineLimits(small, { store: redis(open.client), onStoreError: { local: 0.5 } });
  const result = [];
  for (let i = 0; i < 8; i++) result.push(await local.limit("load", { key: "k" }));
  expect(result.map(({ ok }) => ok)).toEqual([...Array(5).fill(true), ...Array(3).fill(false)]);
  expect(result.every(({ degraded }) => degraded)).toBe(true);
});

describe.each(Object.entries(clustered))("failover of a 3 + 3 cluster: %s", (_, make) => {
  test("over-admission is what the failover itself loses", { timeout: 60_000 }, async () => {
    const cluster = await RedisCluster.start(3, 1);
    cleanups.push(() => cluster.stop());
    const capacity = 20_000;
    const open = await make(cluster.nodes.map((node) => node.port));
    cleanups.push(() => open.close());
    const limiter = defineLimits({ load: { ...limits.load, rate: capacity } }, { store: redis(open.client) });
    const grants: number[] = [];
    let degraded = 0;
    let lastGrant = 0;
    let stop = false;
    const callers = Array.from({ length: 8 }, async () => {
      while (!stop) {
        const decision = await limiter.limit("load", { key: "k" });
        if (decision.degraded) degraded++;
        else if (decision.ok) {
          lastGrant = performance.now();
          grants.push(lastGrant);
        }
        await sleep(2);
      }
    });
    await sleep(500);
    const slots = (await cluster.nodes[0]?.client().cluster("SLOTS")) as unknown as [
      number,
      number,
      [string, number],
    ][];
    const slot = slotOf("tidegate:load:k");
    const port = slots.find(([from, to]) => slot >= from && slot <= to)?.[2][1];
    const killedAt = performance.now();
    await cluster.nodes.find((node) => node.port === port)?.kill();
    while (lastGrant < killedAt + 100 && performance.now() < killedAt + 30_000) await sleep(50);
    const resumedAfter = lastGrant - killedAt;
    await sleep(500);
    stop = true;
    await Promise.all(callers);
    // Rounded up, since what has refilled meanwhile is far less than a token.
    const taken = Math.ceil(capacity - (await limiter.getValue("load", { key: "k" })).value);
    const lost = Math.max(0, grants.length - taken);
    console.log(
      `failover: ${grants.length} granted, ${degraded} degraded, resumed after ${Math.round(resumedAfter)} ms, ${Math.round(lost)} grants lost with the master`,
    );
    // Replication is asynchronous: what the master granted in its last moments may be unknown to the replica.
    const atRisk = grants.filter((at) => at > killedAt - 1_000 && at <= killedAt + 50).length;
    expect(resumedAfter).toBeGreaterThan(0);
    expect(lost).toBeLessThanOrEqual(atRisk);
    expect(taken).toBeLessThan(grants.length + degraded + 0.5);
  });
});
