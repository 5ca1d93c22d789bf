/** How a limiter waits for a store's client that connects for the first time. */
import { beforeEach, expect, test, vi } from "vitest";
import { defineLimits, isStoreError } from "../src/index.ts";
import { connectingBy } from "../src/stores/connecting.ts";
import { behind } from "./behind.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

const limits = { one: { kind: "token bucket", rate: 10, period: 1000 } } as const;

test("while a server does not answer, later calls wait for what is left of the 2 s, and not 2 s each", async () => {
  const store = { ...behind(() => Promise.resolve(), "cold"), connecting: new Promise(() => {}) };
  const limiter = defineLimits(limits, { store });
  const ended: number[] = [];
  const call = () => limiter.limit("one").then(() => ended.push(Date.now() - 1_000_000));
  void call();
  await vi.advanceTimersByTimeAsync(1500);
  void call();
  await vi.advanceTimersByTimeAsync(1500);
  void call();
  await vi.advanceTimersByTimeAsync(0);
  expect(ended).toEqual([2000, 2000, 3000]);
});

test("a client whose connect throws is not waited for again: the first call is sent", async () => {
  const connecting = connectingBy(() => {
    throw new Error("no such database");
  });
  await connecting();
  expect(connecting()).toBeUndefined();
});

test("a connection that fails is a failure of the store, logged once; no rejection is unhandled", async () => {
  const refused = new Error("connection refused");
  const sent = vi.fn();
  const store = { ...behind(sent, "cold"), connecting: Promise.reject(refused) };
  const lines: unknown[][] = [];
  const log = { error: (...line: unknown[]) => void lines.push(line), info: () => {} };
  const limiter = defineLimits(limits, { store, log });
  const denied = await Promise.all([1, 2, 3].map(() => limiter.limit("one", { key: "a" })));
  for (const { ok, degraded, cause } of denied) {
    expect([ok, degraded, isStoreError(cause) && cause.cause]).toEqual([false, true, refused]);
  }
  const all = await limiter.limitAll([{ name: "one", key: "a" }]);
  expect([all.ok, all.degraded]).toEqual([false, true]);
  const message = 'cold: reset of "one:a" failed: connection refused';
  await expect(limiter.reset("one", { key: "a" })).rejects.toMatchObject({ code: "TIDEGATE_STORE", message });
  expect(lines).toEqual([
    [expect.stringMatching(/^tidegate: cold: take of "one:a" failed: connection refused;/), refused],
  ]);
  expect(sent).not.toHaveBeenCalled();
});

test("a failure counts against the node that the client names after it has connected", async () => {
  let connect = (): void => {};
  let node = "";
  const store = {
    ...behind(() => Promise.reject(new Error("refused")), "cold"),
    connecting: new Promise<void>((resolve) => {
      connect = resolve;
    }),
    nodeOf: () => node,
  };
  const lines: string[] = [];
  const limiter = defineLimits(limits, { store, log: { error: (line) => lines.push(line), info: () => {} } });
  const sent = limiter.limit("one", { key: "a" });
  node = "10.0.0.1:7000";
  connect();
  expect((await sent).degraded).toBe(true);
  expect(lines).toEqual([expect.stringContaining("10.0.0.1:7000")]);
});
