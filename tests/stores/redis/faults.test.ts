/** A limiter on servers that fail, as a user has it: default timeout, default breaker. */
import { setTimeout as sleep } from "node:timers/promises";
import { format } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Decision } from "tidegate/store";
import { defineLimits, type Limiter } from "tidegate";
import { redis, type RedisStore } from "tidegate/redis";
import { slotOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import { clustered, type Open, single } from "./clients.ts";
import { Deadline } from "../../support/deadline.ts";
import { heap } from "../../support/heap.ts";
import { LossyProxy } from "../../support/proxy.ts";
import { freePort } from "../../support/ports.ts";
import { started } from "./fixture.ts";
import { RedisCluster, RedisServer } from "./server.ts";

const TIMEOUT = 250;
/** ms, for calls whose answer the test needs. */
const PATIENCE = 60_000;
const CAPACITY = 1e6;
/** A thousandth of a token comes back in a second. */
const limits = { load: { kind: "token bucket", rate: CAPACITY, period: 2 ** 40 } } as const;

interface Subject {
  readonly limiter: Limiter<"load", RedisStore>;
  /** On the same store, with a timeout that only a server that is down can exceed. */
  readonly patient: Limiter<"load", RedisStore>;
}

function subject(open: Open): Subject {
  onTestFinished(() => open.close());
  const store = redis(open.client);
  return { limiter: defineLimits(limits, { store }), patient: defineLimits(limits, { store, timeout: PATIENCE }) };
}

/** Calls one after another for `ms`, and until so many have failed, each within the deadline; returns how they went. */
async function load({ limiter }: Subject, ms: number, failures = 0) {
  const result = { granted: 0, degraded: [] as Decision[] };
  const deadline = new Deadline(TIMEOUT);
  const until = performance.now() + ms;
  do {
    const decision = await deadline.of(() => limiter.limit("load", { key: "k" }));
    if (decision.degraded) {
      result.degraded.push(decision);
      expect(decision.ok).toBe(false);
      expect(decision.cause).toMatchObject({ code: "TIDEGATE_STORE", store: "redis", identity: "load:k" });
    } else if (decision.ok) result.granted++;
    await sleep(2);
  } while (performance.now() < until || result.degraded.length < failures);
  expect(deadline.late).toBe(0);
  return result;
}

/** Calls until the store grants a token again; returns how many calls were degraded before. */
async function resumes({ limiter }: Subject): Promise<number> {
  const began = performance.now();
  for (let degraded = 0; ; degraded++) {
    const decision = await limiter.limit("load", { key: "k" });
    if (!decision.degraded) {
      expect(decision.ok).toBe(true);
      return degraded;
    }
    if (performance.now() - began > PATIENCE) throw new Error("the store never came back", { cause: decision.cause });
    await sleep(20);
  }
}

const takenFrom = async ({ patient }: Subject): Promise<number> =>
  CAPACITY - (await patient.getValue("load", { key: "k" })).value;

/** The tokens taken are at least those granted, and at most these and those of calls without an answer. */
async function nothingTwice(subject: Subject, granted: number, unknown: number) {
  const taken = await takenFrom(subject);
  expect(taken).toBeGreaterThan(granted - 0.5);
  expect(taken).toBeLessThan(granted + unknown + 0.5);
}

const shapes = (["ioredis Redis", "node-redis client", "node-redis 4 client"] as const).map(
  (name) => [name, single[name] as (port: number) => Promise<Open>] as const,
);

describe.each(shapes)("%s", (_, make) => {
  test("after SIGKILL calls are denied, and after a restart they resume without help", async () => {
    const server = await started();
    const tested = subject(await make(server.port));
    await resumes(tested);
    await server.kill();
    const down = await load(tested, 700);
    expect(down.granted).toBe(0);
    expect(down.degraded.length).toBeGreaterThan(0);
    await server.up();
    await resumes(tested);
  });

  test("a connection that breaks under load takes nothing twice", async () => {
    const server = await started();
    const tested = subject(await make(server.port));
    const killer = server.client();
    onTestFinished(() => killer.disconnect());
    const breaking = setInterval(() => void killer.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), 100);
    onTestFinished(() => clearInterval(breaking));
    let granted = 0;
    let unknown = 0;
    const until = performance.now() + 1_500;
    await Promise.all(
      Array.from({ length: 30 }, async () => {
        while (performance.now() < until || granted === 0) {
          const decision = await tested.limiter.limit("load", { key: "k" });
          if (decision.degraded) unknown++;
          else if (decision.ok) granted++;
          await sleep(1);
        }
      }),
    );
    clearInterval(breaking);
    unknown += await resumes(tested);
    expect(granted).toBeGreaterThan(0);
    await nothingTwice(tested, granted + 1, unknown);
  });

  test("an answer that is lost after the step was carried out is not requested again", async () => {
    const server = await started();
    const proxy = await LossyProxy.start(server.port);
    onTestFinished(() => proxy.stop());
    const tested = subject(await make(proxy.port));
    const granted = async () => expect(await tested.patient.limit("load", { key: "k" })).toMatchObject({ ok: true });
    await granted();
    for (let i = 0; i < 5; i++) {
      proxy.lose = 1;
      expect(await tested.patient.limit("load", { key: "k" })).toMatchObject({ ok: false, degraded: true });
      await sleep(300);
      await granted();
    }
    expect(proxy.lost).toBe(5);
    // Each lost one was taken, once.
    expect(Math.round(await takenFrom(tested))).toBe(1 + 5 + 5);
  });

  test("after SIGSTOP calls wait for their deadline, then for nothing, and memory does not grow", async () => {
    const server = await started();
    const tested = subject(await make(server.port));
    const running = await load(tested, 200);
    server.signal("SIGSTOP");
    // More than open the breaker.
    const stopped = await load(tested, 1_500, 6);
    expect(stopped.granted).toBe(0);
    const before = heap();
    const burst = await Promise.all(Array.from({ length: 20_000 }, () => tested.limiter.limit("load", { key: "k" })));
    expect(burst.every(({ degraded }) => degraded)).toBe(true);
    burst.length = 0;
    expect(heap() - before).toBeLessThan(4e6);
    server.signal("SIGCONT");
    const unknown = running.degraded.length + stopped.degraded.length + 20_000 + (await resumes(tested));
    await nothingTwice(tested, running.granted + 1, unknown);
  });

  test("after CLIENT PAUSE calls resume, and nothing is taken twice", async () => {
    const server = await started();
    const tested = subject(await make(server.port));
    const before = await load(tested, 100);
    const pauser = server.client();
    onTestFinished(() => pauser.disconnect());
    await pauser.client("PAUSE", 600_000, "WRITE");
    const paused = await load(tested, 600);
    expect(paused.degraded.length).toBeGreaterThan(0);
    await pauser.client("UNPAUSE");
    const unknown = before.degraded.length + paused.degraded.length + (await resumes(tested));
    await nothingTwice(tested, before.granted + paused.granted + 1, unknown);
  });

  test("calls on a server that takes no writes, as a read-only replica or one whose memory is full, are degraded", async () => {
    const failing = async (port: number, what: RegExp) => {
      const tested = subject(await make(port));
      const result = await load(tested, 500);
      expect(result.granted).toBe(0);
      // A first call may have ended at its deadline, before the server answered.
      const { cause } = await tested.patient.limit("load", { key: "k" });
      expect((cause as Error).message).toMatch(what);
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

  test("an error of the server is logged without the script and without the keys of other callers", async () => {
    const server = await started("--maxmemory", "1", "--maxmemory-policy", "noeviction");
    const open = await make(server.port);
    onTestFinished(() => open.close());
    const lines: string[] = [];
    const log = { error: (...line: unknown[]) => lines.push(format(...line)), info: () => {} };
    const limiter = defineLimits(limits, { store: redis(open.client), timeout: PATIENCE, log });
    await Promise.all(["ann", "ben"].map((key) => limiter.limit("load", { key })));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('take of "load:ann" failed: OOM');
    expect(lines[0]).not.toMatch(/local argv|ben/);
  });

  test("where the server quotes the command, the log does not", async () => {
    const server = await started("--rename-command", "EVALSHA", "");
    const open = await make(server.port);
    onTestFinished(() => open.close());
    const lines: string[] = [];
    const log = { error: (...line: unknown[]) => lines.push(format(...line)), info: () => {} };
    const limiter = defineLimits(limits, { store: redis(open.client), timeout: PATIENCE, log });
    // The first call of all sends the script whole.
    expect(await limiter.limit("load", { key: "first" })).toMatchObject({ ok: true });
    const decisions = await Promise.all(["ann", "ben"].map((key) => limiter.limit("load", { key })));
    for (const { cause } of decisions) expect((cause as Error).message).toMatch(/ERR unknown command 'evalsha'$/i);
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("ben");
  });
});

test("a connection in a MULTI of the application: the error names it, and calls resume after EXEC", async () => {
  const server = await started();
  const client = server.client();
  const tested = subject({ client, close: () => client.disconnect() });
  await client.multi({ pipeline: false });
  const { cause } = await tested.patient.limit("load", { key: "k" });
  expect((cause as Error).message).toMatch(/failed: the connection is in a MULTI: give the store/);
  await client.exec();
  await resumes(tested);
});

test("with a wrong password no call outlives its deadline, and none is granted", async () => {
  const server = await started("--requirepass", "secret");
  const tested = subject(await (single["ioredis Redis"] as (port: number) => Promise<Open>)(server.port));
  const result = await load(tested, 600);
  expect(result.granted).toBe(0);
  expect(result.degraded.length).toBeGreaterThan(0);
});

test("calls resume without help once a server listens where connections were refused", async () => {
  const port = await freePort();
  const tested = subject(await (single["ioredis Redis"] as (port: number) => Promise<Open>)(port));
  const result = await load(tested, 600);
  expect(result.granted).toBe(0);
  expect(result.degraded.length).toBeGreaterThan(0);
  const server = await RedisServer.startOn(port);
  onTestFinished(() => server.stop());
  await resumes(tested);
});

test("calls on a server that loads its data are denied until it has", async () => {
  const server = await started();
  const filler = server.client();
  const pipeline = filler.pipeline();
  for (let i = 0; i < 1_500; i++) pipeline.set(`filler:${i}`, "x".repeat(200));
  await pipeline.exec();
  await filler.save();
  filler.disconnect();
  await server.kill();
  // 30 s, until the delay is set to 0.
  server.launch("--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024");
  const tested = subject(await (single["ioredis Redis"] as (port: number) => Promise<Open>)(server.port));
  const loading = await load(tested, 500);
  expect(loading.granted).toBe(0);
  expect(loading.degraded.length).toBeGreaterThan(0);
  const admin = server.client({ enableReadyCheck: false });
  onTestFinished(() => admin.disconnect());
  await admin.config("SET", "key-load-delay", "0");
  await resumes(tested);
});

test("without a server, onStoreError allows, or decides on a local fraction", async () => {
  const port = await freePort();
  const open = await (single["ioredis Redis"] as (port: number) => Promise<Open>)(port);
  onTestFinished(() => open.close());
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
  test("over-admission is what the failover itself loses", { timeout: 300_000 }, async () => {
    const cluster = await RedisCluster.start(3, 1);
    onTestFinished(() => cluster.stop());
    const capacity = 20_000;
    const open = await make(cluster.nodes.map((node) => node.port));
    onTestFinished(() => open.close());
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
    while (lastGrant < killedAt + 100 && performance.now() < killedAt + 120_000) await sleep(50);
    const resumedAfter = lastGrant - killedAt;
    await sleep(500);
    stop = true;
    await Promise.all(callers);
    // Rounded up, since what has refilled meanwhile is far less than a token.
    const patient = defineLimits(
      { load: { ...limits.load, rate: capacity } },
      { store: redis(open.client), timeout: PATIENCE },
    );
    const taken = Math.ceil(capacity - (await patient.getValue("load", { key: "k" })).value);
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
