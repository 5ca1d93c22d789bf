/** A limiter on servers that fail, as a user has it: default timeout, default breaker. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { Limit } from "tidegate/store";
import { memcached, type PromiseMemcached } from "tidegate/memcached";
import { lateTakesNothing, outage } from "../outages.ts";
import { clients } from "./clients.ts";
import { MemcachedServer } from "./server.ts";

const bucket = { kind: "token bucket", rate: 1, period: HOUR, capacity: 1000 } as const;
const ERROR = { code: "TIDEGATE_STORE", store: "memcached", identity: "denies:k" };

/** A server and a client of it, for the rest of a test. */
async function started(make: (typeof clients)[string]) {
  const server = await MemcachedServer.start();
  onTestFinished(() => server.stop());
  const open = make(server.address);
  onTestFinished(() => open.close());
  return { server, client: open.client };
}

describe.each(Object.entries(clients))("%s", (_, make) => {
  test.each(["killed", "stopped"])(
    "a server that is %s: onStoreError decides, and the store when it is back",
    async (how) => {
      const { server, client } = await started(make);
      await outage(how, server, memcached(client));
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
  const { server, client } = await started(clients["memcached"] as (typeof clients)[string]);
  await lateTakesNothing(server, memcached(client, { stepTimeout: 60_000 }));
});

test("a write that was sent before the deadline takes its tokens when the server continues", async () => {
  const { server, client } = await started(clients["memcache-client"] as (typeof clients)[string]);
  const limits = (timeout: number) => defineLimits({ late: bucket }, { store: memcached(client), timeout, log: false });
  await limits(60_000).limit("late");
  const { cas } = client as PromiseMemcached;
  vi.spyOn(client as PromiseMemcached, "cas").mockImplementationOnce((...write) => {
    server.signal("SIGSTOP");
    return cas.apply(client, write);
  });
  expect(await limits(200).limit("late")).toMatchObject({ ok: false, degraded: true });
  server.signal("SIGCONT");
  // The same connection: the write precedes it.
  expect((await limits(60_000).getValue("late")).value).toBeCloseTo(998, 1);
});

test("a key that others always write first: the call tries again, and rejects at its deadline", async () => {
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
