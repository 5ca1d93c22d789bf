/** A limiter on servers that fail, as a user has it: default timeout, default breaker. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { Limit } from "tidegate/store";
import { memcached } from "tidegate/memcached";
import { clients } from "./clients.ts";
import { MemcachedServer } from "./server.ts";

const bucket = { kind: "token bucket", rate: 1, period: HOUR, capacity: 1000 } as const;
const ERROR = { code: "TIDEGATE_STORE", store: "memcached", identity: "denies:k" };

async function subject(make: (typeof clients)[string]) {
  const server = await MemcachedServer.start();
  onTestFinished(() => server.stop());
  const open = make(server.address);
  onTestFinished(() => open.close());
  const limits = { denies: bucket, allows: { ...bucket, onStoreError: "allow" } } as const;
  const limiter = defineLimits(limits, { store: memcached(open.client) });
  /** Waits until the store itself answers again. */
  const resumes = async (): Promise<void> => {
    while ((await limiter.limit("denies", { key: "k" })).degraded)
      await new Promise((resolve) => setTimeout(resolve, 50));
  };
  return { server, limiter, resumes };
}

describe.each(Object.entries(clients))("%s", (_, make) => {
  test.each(["killed", "stopped"])(
    "a server that is %s: onStoreError decides, and the store when it is back",
    async (how) => {
      const { server, limiter, resumes } = await subject(make);
      await resumes();
      if (how === "killed") await server.stop();
      else server.signal("SIGSTOP");
      const [denied, allowed] = await Promise.all([
        limiter.limit("denies", { key: "k" }),
        limiter.limit("allows", { key: "k" }),
      ]);
      expect([denied.ok, denied.degraded, allowed.ok, allowed.degraded]).toEqual([false, true, true, true]);
      expect(denied.cause).toMatchObject(ERROR);
      if (how === "killed") await server.up();
      else server.signal("SIGCONT");
      await resumes();
    },
  );
});

describe("a client that never answers", () => {
  const silent = { reads: 0, gets: () => void silent.reads++, add: () => {}, cas: () => {}, del: () => {} };
  const store = memcached(silent, { stepTimeout: 20 });
  const limit = new Limit("denies", bucket);
  const call = { op: "take", limit, key: "k", count: 1, reserve: false } as const;

  test("rejects after `stepTimeout`, and the next call reads again", async () => {
    for (const attempt of [1, 2]) {
      await expect(store.decide(call, undefined)).rejects.toMatchObject(ERROR);
      await expect(store.decide(call, undefined)).rejects.toThrow(/no answer within \d+ ms/);
      expect(silent.reads).toBe(2 * attempt);
    }
  });
});

test("a call that is past its deadline takes nothing when the server continues", async () => {
  const server = await MemcachedServer.start();
  onTestFinished(() => server.stop());
  const open = (clients["memcached"] as (typeof clients)[string])(server.address);
  onTestFinished(() => open.close());
  const store = memcached(open.client, { stepTimeout: 60_000 });
  const limiter = (timeout: number) => defineLimits({ denies: bucket }, { store, timeout, log: false });
  await limiter(60_000).limit("denies", { key: "k" });
  server.signal("SIGSTOP");
  const late = await Promise.all([1, 2, 3].map(() => limiter(100).limit("denies", { key: "k" })));
  expect(late.map(({ degraded }) => degraded)).toEqual([true, true, true]);
  server.signal("SIGCONT");
  // One step later: what was out has been answered.
  await limiter(60_000).check("denies", { key: "k" });
  expect((await limiter(60_000).getValue("denies", { key: "k" })).value).toBeCloseTo(999, 1);
});

test("others that are always faster: tried again, and given up in time", async () => {
  let version = 0;
  const busy = {
    gets: async () => ({ value: "5 1000", casUniq: `${++version}` }),
    cas: async () => Promise.reject(new Error("EXISTS")),
    add: async () => ["STORED"],
    delete: async () => ["DELETED"],
    cmd: async () => [],
  };
  const limit = new Limit("denies", bucket);
  const store = memcached(busy, { stepTimeout: 1000 });
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  const answer = store.decide({ op: "take", limit, key: "k", count: 1, reserve: false }, 2000);
  const refused = expect(answer).rejects.toMatchObject({ ...ERROR, message: expect.stringContaining("not stored") });
  await vi.advanceTimersByTimeAsync(1000);
  await refused;
  expect(version).toBeGreaterThan(1);
});
