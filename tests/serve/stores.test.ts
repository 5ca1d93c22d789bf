import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { startServer } from "../stores/postgres/server.ts";
import { RedisServer } from "../stores/redis/server.ts";
import { LossyProxy } from "../support/proxy.ts";
import { PATIENT, POLICIES, type Served, serving, TOKEN } from "./service.ts";

const BODY = { name: "api", key: "192.0.2.1" };

/** Both services decide on one state: of three tokens, each gets what the other left. */
async function share(a: Served, b: Served): Promise<void> {
  const left = [];
  for (const service of [a, b, a, b]) {
    const { body } = await service.post("/v1/decide", BODY);
    left.push([body.ok, body.remaining, body.degraded]);
  }
  expect(left).toEqual([
    [true, 2, undefined],
    [true, 1, undefined],
    [true, 0, undefined],
    [false, 0, undefined],
  ]);
}

/** Waits until the service decides by its store. */
async function decided(service: Served): Promise<void> {
  while ((await service.post("/v1/check", BODY)).body.degraded === true) await sleep(50);
}

/** The order in which a service ends, the store last. */
async function endsCleanly(service: Served): Promise<void> {
  expect(await service.end()).toBe(0);
  expect(service.log().map(({ event }) => event)).toEqual(["started", "stopping", "stopped"]);
}

test("file: two services of a machine share a folder", async () => {
  await using a = await serving(POLICIES, ["--store", "file:./limits", ...PATIENT]);
  await using b = await serving(POLICIES, ["--store", `file:${join(a.folder, "limits")}`, ...PATIENT]);
  await share(a, b);
  await endsCleanly(a);
});

test("postgres: --migrate makes the schema, the password is not logged", async () => {
  await using server = await startServer({ fsync: "off" });
  const url = `postgres://postgres:secret@127.0.0.1:${server.port}/postgres`;
  await using before = await serving(POLICIES, ["--store", url, ...PATIENT]);
  expect((await before.request("/readyz")).status).toBe(503);
  await using a = await serving(POLICIES, ["--store", url, "--migrate", ...PATIENT]);
  await using b = await serving(POLICIES, ["--store", url, ...PATIENT]);
  await share(a, b);
  expect((await before.request("/readyz")).status).toBe(200);
  expect(a.log()[0]).toMatchObject({ store: `postgres://postgres:***@127.0.0.1:${server.port}/postgres` });
  await endsCleanly(a);
});

test("postgres: a decision waits for --timeout, also where that is more than a second", async () => {
  await using server = await startServer({ fsync: "off" });
  const url = `postgres://postgres@127.0.0.1:${server.port}/postgres`;
  await using service = await serving(POLICIES, ["--store", url, "--migrate", ...PATIENT]);
  expect((await service.post("/v1/decide", BODY)).body).toMatchObject({ ok: true, remaining: 2 });
  server.signal("SIGSTOP");
  const decided = service.post("/v1/decide", BODY);
  await sleep(1500);
  server.signal("SIGCONT");
  expect((await decided).body).toMatchObject({ ok: true, remaining: 1 });
});

test("postgres: --migrate ends with an error on a server that accepts the connection and sends nothing", async () => {
  const silent = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const store = `postgres://127.0.0.1:${(silent.address() as AddressInfo).port}/d`;
  await expect(serving(POLICIES, ["--store", store, "--migrate"])).rejects.toThrow(
    /--migrate failed on postgres:.*timeout/,
  );
  silent.close();
});

test.each([
  ["redis", () => RedisServer.start()],
  ["postgres", () => startServer({ fsync: "off" })],
] as const)(
  "%s: a server that does not answer does not delay the end of the service",
  { timeout: 60_000 },
  async (name, start) => {
    await using server = await start();
    const url = name === "redis" ? "redis://127.0.0.1" : "postgres://postgres@127.0.0.1";
    const args = ["--store", `${url}:${server.port}${name === "redis" ? "" : "/postgres"}`];
    if (name === "postgres") args.push("--migrate");
    await using service = await serving(POLICIES, [...args, "--timeout", "1s"]);
    await service.post("/v1/decide", BODY);
    server.signal("SIGSTOP");
    try {
      // What it sends never has a reply.
      expect((await service.post("/v1/decide", BODY)).body.degraded).toBe(true);
      expect(await service.end()).toBe(0);
      expect(service.log().at(-1)?.event).toBe("stopped");
    } finally {
      server.signal("SIGCONT");
    }
  },
);

describe("redis", () => {
  test("two services share a server", async () => {
    await using redis = await RedisServer.start();
    await using a = await serving(POLICIES, ["--store", redis.url, ...PATIENT]);
    await using b = await serving(POLICIES, ["--store", `${redis.url}/0`, ...PATIENT]);
    await share(a, b);
    await endsCleanly(a);
  });

  test("a database that the server does not have ends the start: ioredis would use database 0", async () => {
    await using redis = await RedisServer.start();
    await expect(serving(POLICIES, ["--store", `${redis.url}/16`])).rejects.toThrow(
      "--store has a database that the server refuses: ERR DB index is out of range",
    );
  });

  test("a server that cannot be reached is logged with the reason that the client has", async () => {
    await using redis = await RedisServer.start();
    await redis.kill();
    await using service = await serving(POLICIES, ["--store", redis.url]);
    expect((await service.post("/v1/decide", BODY)).body.degraded).toBe(true);
    const failed = service.log().find(({ event }) => event === "store failed");
    expect(failed).toMatchObject({ connection: expect.stringMatching(/ECONNREFUSED/) });
  });

  test("a server that fails is logged once with its cause, and once when it answers again", async () => {
    await using redis = await RedisServer.start();
    // The calls of a failed server take as long.
    await using service = await serving(POLICIES, ["--store", redis.url, "--timeout", "5s"]);
    expect((await service.post("/v1/decide", BODY)).body).toMatchObject({ ok: true, remaining: 2 });
    await redis.kill();
    const calls = Array.from({ length: 5 }, () => service.post("/v1/decide", BODY));
    for (const { status, body } of await Promise.all(calls)) {
      expect([status, body.ok, body.degraded]).toEqual([200, false, true]);
      expect(body.cause).toMatch(/redis/);
    }
    const unready = await service.request("/readyz");
    expect([unready.status, unready.body.detail]).toEqual([503, expect.stringMatching(/^The store failed: redis: /)]);
    expect((await service.request("/healthz")).status).toBe(200);
    await redis.up();
    while ((await service.request("/readyz")).status !== 200);
    await service.logged("store answers");
    const events = service.log().map(({ level, event }) => `${level} ${event}`);
    expect(events).toEqual(["info started", "error store failed", "info store answers"]);
    const [, failed] = service.log();
    expect(failed).toMatchObject({
      message: expect.stringContaining("its calls are denied"),
      cause: expect.any(String),
    });
  });

  test("a connection that no longer carries anything is replaced", { timeout: 60_000 }, async () => {
    await using redis = await RedisServer.start();
    const proxy = await LossyProxy.start(redis.port);
    try {
      await using service = await serving(POLICIES, ["--store", `redis://127.0.0.1:${proxy.port}`]);
      await decided(service);
      proxy.stall();
      while ((await service.post("/v1/check", BODY)).body.degraded !== true);
      await decided(service);
    } finally {
      await proxy.stop();
    }
  });

  test("after a failover behind one address, the connection to the former master is replaced", async () => {
    await using former = await RedisServer.start();
    await using master = await RedisServer.start();
    const proxy = await LossyProxy.start(former.port);
    try {
      await using service = await serving(POLICIES, ["--store", `redis://127.0.0.1:${proxy.port}`, ...PATIENT]);
      await decided(service);
      proxy.target = master.port;
      const admin = former.client();
      await admin.replicaof("127.0.0.1", master.port);
      admin.disconnect();
      expect((await service.post("/v1/decide", BODY)).body.cause).toMatch(/READONLY/);
      expect((await service.post("/v1/decide", BODY)).body).toMatchObject({ ok: true, remaining: 2 });
    } finally {
      await proxy.stop();
    }
  });

  test("a proxy is answered 503 while the server fails, and not that the client has no tokens left", async () => {
    await using redis = await RedisServer.start();
    await using service = await serving(POLICIES, ["--store", redis.url, "--trust-proxy", "1", "--timeout", "5s"]);
    await redis.kill();
    for (const path of ["/v1/forward-auth", "/v1/auth-request"]) {
      expect((await service.request(path, { headers: { "x-forwarded-for": "192.0.2.1" } })).status).toBe(503);
    }
  });

  test("a server that can only be read is not ready, and does not count as recovered", async () => {
    await using redis = await RedisServer.start("--maxmemory", "1", "--maxmemory-policy", "noeviction");
    await using service = await serving(POLICIES, ["--store", redis.url, ...PATIENT]);
    for (let turn = 0; turn < 2; turn++) {
      expect((await service.post("/v1/decide", BODY)).body.cause).toMatch(/OOM/);
      const { status, body } = await service.request("/readyz");
      expect([status, body.detail]).toEqual([503, expect.stringMatching(/OOM/)]);
    }
    expect(service.log().map(({ event }) => event)).toEqual(["started", "store failed"]);
    const admin = redis.client();
    await admin.config("SET", "maxmemory", "0");
    admin.disconnect();
    while ((await service.request("/readyz")).status !== 200);
    expect((await service.request("/metrics")).body).not.toContain("tidegate-serve.ready");
  });

  test("an administrator's changes are errors while the server fails, whatever --on-store-error is", async () => {
    await using redis = await RedisServer.start();
    await redis.kill();
    const store = redis.url;
    for (const otherwise of ["deny", "allow", "0.5"]) {
      const args = ["--store", store, "--on-store-error", otherwise, "--timeout", "50ms"];
      await using service = await serving(POLICIES, args, { TIDEGATE_ADMIN_TOKEN: TOKEN });
      for (const [operation, more] of [
        ["block", { for: "15m" }],
        ["give", {}],
        ["charge", {}],
        ["reset", {}],
      ] as const) {
        const authorization = `Bearer ${TOKEN}`;
        const { status, body } = await service.post(`/v1/${operation}`, { ...BODY, ...more }, { authorization });
        expect([operation, status]).toEqual([operation, 503]);
        expect(body.detail).toMatch(/^The store failed: redis: /);
      }
      // Nor do they change the limit in memory by which a fraction decides.
      expect((await service.post("/v1/decide", BODY)).body.ok).toBe(otherwise !== "deny");
    }
  });

  test("--on-store-error allow and 0.5 decide without the store, and the decisions are marked", async () => {
    await using redis = await RedisServer.start();
    await redis.kill();
    const store = redis.url;
    await using open = await serving(POLICIES, ["--store", store, "--on-store-error", "allow", "--timeout", "50ms"]);
    expect((await open.post("/v1/decide", BODY)).body).toMatchObject({ ok: true, degraded: true });
    await using local = await serving(POLICIES, ["--store", store, "--on-store-error", "0.5", "--timeout", "50ms"]);
    const { body } = await local.post("/v1/decide", BODY);
    expect(body).toMatchObject({ ok: true, degraded: true, limit: 1.5 });
  });
});
