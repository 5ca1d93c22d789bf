/** Beyond the store suite: what Durable Objects write, what survives, what is deleted. In workerd. */
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { project } from "../project.ts";
import { inRuntime } from "../runtimes.ts";
import { bundle, start } from "./server.ts";

interface Answer {
  ok: boolean;
  value: number;
  ts: number;
  resetAt: number;
  cause?: string;
}

await inRuntime("workerd", async (wrangler) => {
  const user = project("workerd");
  bundle(wrangler, user.folder);
  const stored = join(user.folder, "stored");
  let worker = await start(user.folder, stored);
  afterAll(() => worker.stop());

  const limit = (request: Record<string, string | number>) =>
    worker.get("/limit", { name: "hot", ...request }) as Promise<Answer>;
  const call = (method: string, object: string, args: unknown[] = [], namespace = "WATCHED") =>
    worker.get(`/${method}`, { object, in: namespace, args: JSON.stringify(args) });

  // Their alarms come after half a minute, in which the other tests run.
  for (const key of ["idle", "noted"]) await limit({ name: "brief", key, count: 10 });
  await call("note", "brief:noted");
  const began = Date.now();
  const idle = { states: await call("count", "brief:idle"), alarmAt: await call("alarmAt", "brief:idle") };

  describe.each(["WATCHED", "CLASSIC"])("%s", (namespace) => {
    const inside = { in: namespace };

    test("concurrent requests, each a Worker's own, take exactly the tokens of the limit", async () => {
      const answers = await Promise.all(Array.from({ length: 150 }, () => limit({ key: "together", ...inside })));
      expect(answers.filter(({ ok }) => ok).length).toBe(100);
    });

    test("stores value, ts and the expiry: 24 bytes, little-endian doubles", async () => {
      const { value, ts, resetAt } = await limit({ key: "bytes", count: 2.5, ...inside });
      const bytes = Buffer.from((await call("bytes", "hot:bytes", ["hot:bytes"], namespace)) as number[]);
      expect(bytes.length).toBe(24);
      expect([0, 8].map((at) => bytes.readDoubleLE(at))).toEqual([value, ts]);
      // Half a minute more than the refill takes, by the object's own clock.
      expect(bytes.readDoubleLE(16)).toBeGreaterThanOrEqual(resetAt + 30_000);
      expect(bytes.readDoubleLE(16)).toBeLessThan(resetAt + 40_000);
    });

    test("a denied or checked call writes nothing; a grant writes the state and, once, the alarm", async () => {
      await limit({ key: "writes", count: 99.5, ...inside });
      expect(await call("writes", "hot:writes", [], namespace)).toBe(2);
      const before = await call("bytes", "hot:writes", ["hot:writes"], namespace);
      for (const op of ["limit", "check"])
        expect((await limit({ key: "writes", op, count: 50, ...inside })).ok).toBe(false);
      expect((await limit({ key: "writes", op: "check", count: 0.25, ...inside })).ok).toBe(true);
      expect((await limit({ key: "writes", count: 0, ...inside })).ok).toBe(true);
      expect(await call("bytes", "hot:writes", ["hot:writes"], namespace)).toEqual(before);
      expect(await call("writes", "hot:writes", [], namespace)).toBe(2);
      expect((await limit({ key: "writes", count: 0.25, ...inside })).ok).toBe(true);
      expect(await call("writes", "hot:writes", [], namespace)).toBe(3);
    });

    test("a check on a fresh key leaves its object empty", async () => {
      await limit({ key: "looked at", op: "check", ...inside });
      expect(await call("count", "hot:looked at", [], namespace)).toBe(0);
      expect(await call("writes", "hot:looked at", [], namespace)).toBe(0);
    });

    test("an object that is evicted from memory keeps its state", async () => {
      const before = await limit({ key: "evicted", count: 60, ...inside });
      expect(await call("evict", "hot:evicted", [], namespace)).toEqual({ thrown: "evicted by a test" });
      expect(await call("writes", "hot:evicted", [], namespace)).toBe(0);
      const after = await limit({ key: "evicted", op: "check", count: 60, ...inside });
      expect(after.ok).toBe(false);
      expect(after.value).toBeLessThan(before.value + 5);
    });

    test("a corrupt state is reported with its identity, and not changed", async () => {
      await call("corrupt", "hot:broken", ["hot:broken", "not bytes"], namespace);
      const { ok, cause } = await limit({ key: "broken", ...inside });
      expect(ok).toBe(false);
      expect(cause).toContain('"hot:broken"');
      expect(cause).toContain("what is stored must be a state");
    });

    test("limitAll on limits of two objects is refused, and takes nothing", async () => {
      const refused = (await worker.get("/all", inside)) as { code: string; message: string };
      expect(refused.code).toBe("TIDEGATE_INPUT");
      expect(refused.message).toContain("`requests` must be on limits of one object");
      expect(await call("count", "hot:a", [], namespace)).toBe(0);
    });
  });

  test.each(["LIMITS", "LATE", "LATE_CLASSIC"])(
    "%s: of 150 and 300 parallel calls of one request on a capacity of 100, 100 are granted",
    async (of) => {
      expect(await worker.get("/burst", { in: of, calls: 150 })).toBe(100);
      expect(await worker.get("/burst", { in: of, calls: 300 })).toBe(100);
    },
  );

  test("a call whose deadline passes in an object's queue takes nothing", async () => {
    expect(await worker.get("/late")).toEqual({ degraded: true, taken: 1 });
  });

  test("limits that are defined at global scope, in memory and on a binding, serve requests", async () => {
    const both = [true, true];
    expect(await worker.get("/global")).toEqual([both, both, [false, false]]);
  });

  test("leased: of 50,000 decisions per second in one isolate, fewer than one in a hundred reaches the object", async () => {
    const requests = Array.from({ length: 5 }, () => worker.get("/lease", { name: "ample", times: 10_000 }));
    expect(await Promise.all(requests)).toEqual([10_000, 10_000, 10_000, 10_000, 10_000]);
    expect(await call("calls", "ample:hot")).toBeLessThan(500);
  });

  test("leased: requests of one isolate take exactly the tokens of the limit", async () => {
    const requests = Array.from({ length: 5 }, () => worker.get("/lease", { name: "stock", times: 500 }));
    const granted = (await Promise.all(requests)) as number[];
    expect(granted.reduce((sum, one) => sum + one, 0)).toBe(1000);
  });

  test("a call on a limit of 32 shards is one RPC of its Worker, whatever the decision", async () => {
    const calls = await worker.get("/rpcs", { in: "LIMITS", shards: 32 });
    expect(calls).toEqual({
      granted: { ok: true, made: 1 },
      rest: { ok: true, made: 1 },
      denied: { ok: false, made: 1 },
      checked: { ok: false, made: 1 },
      value: { made: 1 },
      given: { ok: true, made: 1 },
      charged: { ok: true, made: 1 },
      reset: { made: 1 },
    });
  });

  test.each([
    [2, "LIMITS"],
    [7, "LIMITS"],
    [7, "ALONE"],
  ])("%i shards in objects of their own in %s mint no token and lose none", async (shards, binding) => {
    const of = JSON.stringify({ shards, capacity: 120, callers: 12, binding });
    const result = (await worker.get("/spread", { of })) as Record<string, number | boolean | string>;
    expect(result["most"]).toBeLessThanOrEqual(120);
    expect((result["out"] as number) + (result["value"] as number)).toBeCloseTo(120, 5);
    expect(result).toMatchObject({
      rest: true,
      beyond: false,
      again: true,
      all: expect.stringMatching(/^`requests` must be on limits of one object.*; got shards in objects of their own$/),
    });
  });

  test("an alarm deletes a full state completely, and no table of a subclass", async () => {
    expect(idle.states).toBe(1);
    expect(idle.alarmAt).toBeGreaterThan(began);
    await expect.poll(() => call("count", "brief:idle"), { timeout: 150_000, interval: 1000 }).toBe(0);
    expect(await call("alarmAt", "brief:idle")).toBeNull();
    await expect.poll(() => call("alarmAt", "brief:noted"), { timeout: 150_000, interval: 1000 }).toBeNull();
    expect(await call("count", "brief:noted")).toBe(0);
    expect(await call("notes", "brief:noted")).toEqual(["kept"]);
  });

  test("a restart keeps the state", async () => {
    await limit({ key: "restarted", count: 70 });
    await worker.stop();
    worker = await start(user.folder, stored);
    expect((await limit({ key: "restarted", op: "check", count: 50 })).ok).toBe(false);
    expect((await limit({ key: "restarted", count: 25 })).ok).toBe(true);
  });
});
