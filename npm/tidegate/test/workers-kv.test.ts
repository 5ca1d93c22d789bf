/** Workers KV takes one write a second on a key, from all isolates together, and rejects the others with 429. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DAY, defineLimits } from "../src/index.ts";
import { type KvNamespaceLike, workersKv } from "../src/stores/workers-kv.ts";

const configs = { quota: { kind: "fixed window", rate: 10, period: DAY, start: 0 } } as const;
let values: Map<string, ArrayBuffer>;
let failure: string | undefined;
beforeEach(() => {
  vi.useFakeTimers({ now: 30 * DAY });
  values = new Map();
  failure = undefined;
});
afterEach(() => {
  vi.useRealTimers();
});

const namespace = {
  get: async (key: string) => values.get(key) ?? null,
  async put(key: string, value: Uint8Array) {
    if (failure !== undefined) throw new Error(failure);
    values.set(key, value.slice().buffer as ArrayBuffer);
  },
  delete: async (key: string) => void values.delete(key),
} as unknown as KvNamespaceLike;
const isolate = () => defineLimits(configs, { store: workersKv(namespace), log: false });

test("a write that KV refuses with 429 fails no call, and is written later", async () => {
  const limits = isolate();
  failure = "KV PUT failed: 429 Too Many Requests";
  expect(await limits.limit("quota", { count: 4 })).toMatchObject({ ok: true, remaining: 6 });
  expect((await limits.limit("quota")).degraded).toBeUndefined();
  expect(values.size).toBe(0);
  failure = undefined;
  vi.advanceTimersByTime(1000);
  // A denial takes nothing, and writes what was taken before.
  expect((await limits.limit("quota", { count: 9 })).ok).toBe(false);
  expect((await isolate().getValue("quota")).value).toBe(5);
});

test("any other failure of a write is a failure of the store, and is written later too", async () => {
  const limits = isolate();
  failure = "KV PUT failed: 500 Internal Server Error";
  expect(await limits.limit("quota", { count: 4 })).toMatchObject({ ok: false, degraded: true });
  failure = undefined;
  vi.advanceTimersByTime(1000);
  expect((await limits.limit("quota", { count: 9 })).ok).toBe(false);
  expect((await isolate().getValue("quota")).value).toBe(6);
});
