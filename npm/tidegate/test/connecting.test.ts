/** How a limiter waits for a store's client that connects for the first time. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defineLimits, memory } from "../src/index.ts";
import type { AsyncStore } from "../src/stores/contract.ts";
import { connectingBy } from "../src/stores/steps.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const limits = { one: { kind: "token bucket", rate: 10, period: 1000 } } as const;

test("while a server does not answer, later calls wait for what is left of the 2 s, and not 2 s each", async () => {
  const held = memory();
  const store: AsyncStore = {
    name: "cold",
    sync: false,
    connecting: new Promise(() => {}),
    decide: async (call, now) => held.decide(call, now),
    decideAll: async (calls, now) => held.decideAll(calls, now),
    reset: async (limit, key) => held.reset(limit, key),
    getValue: async (limit, key, now) => held.getValue(limit, key, now),
  };
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

test("a client that throws when it should connect has failed to, and the first call is sent", async () => {
  const connecting = connectingBy(() => {
    throw new Error("no such database");
  });
  await connecting();
  expect(connecting()).toBeUndefined();
});
