/** Workers KV takes one write a second on a key, from all isolates together, and rejects the others with 429. */
import { beforeEach, expect, test, vi } from "vitest";
import { during } from "#workers";
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

/** What each request to KV waits for, by method. */
const held: Partial<Record<"get" | "put" | "delete", Promise<void>>> = {};
const namespace = {
  async get(key: string) {
    const value = values.get(key) ?? null;
    await held.get;
    return value;
  },
  async put(key: string, value: Uint8Array) {
    if (failure !== undefined) throw new Error(failure);
    const bytes = value.slice().buffer as ArrayBuffer;
    await held.put;
    values.set(key, bytes);
  },
  async delete(key: string) {
    await held.delete;
    if (failure !== undefined) throw new Error(failure);
    values.delete(key);
  },
} as unknown as KvNamespaceLike;

/** Holds the requests of a method back; the result lets them through. */
function hold(method: "get" | "put" | "delete"): () => void {
  let go: () => void = () => undefined;
  held[method] = new Promise<void>((done) => (go = done));
  return () => {
    delete held[method];
    go();
  };
}
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

test("a reset is not undone by a read, a write or a grant that it overtakes", async () => {
  const limits = isolate();
  await isolate().limit("quota", { key: "read", count: 9 });
  for (const key of ["write", "grant"]) await limits.limit("quota", { key, count: 8 });
  vi.advanceTimersByTime(1000);
  const [read, write, deleted] = [hold("get"), hold("put"), hold("delete")];
  const calls = [limits.limit("quota", { key: "read" }), limits.limit("quota", { key: "write" })];
  await Promise.resolve();
  const resets = ["read", "write", "grant"].map((key) => limits.reset("quota", { key }));
  // It is decided on the state after the reset.
  calls.push(limits.limit("quota", { key: "grant", count: 2 }));
  await Promise.resolve();
  for (const go of [read, write, deleted]) go();
  await Promise.all([...calls, ...resets]);
  vi.advanceTimersByTime(1000);
  for (const key of ["read", "write", "grant"]) await limits.limit("quota", { key, count: 0 });
  const values = (by: typeof limits) =>
    Promise.all(["read", "write", "grant"].map(async (key) => (await by.getValue("quota", { key })).value));
  expect(await values(limits)).toEqual([9, 10, 8]);
  expect(await values(isolate())).toEqual([9, 10, 8]);
});

test("a reset reaches an isolate that has cached the key", async () => {
  const cached = isolate();
  await cached.limit("quota", { count: 10 });
  await isolate().reset("quota");
  // Nothing is read again for a minute, and what was written may not be readable for another.
  vi.advanceTimersByTime(60_000);
  expect((await cached.limit("quota")).ok).toBe(false);
  vi.advanceTimersByTime(60_000);
  expect((await cached.limit("quota")).ok).toBe(true);
});

test.each([
  [120, [120]],
  [179, [119, 178, 179]],
])(
  "an isolate that granted a key counts by itself until it reads a reset, %d s after its last write",
  async (last, calls) => {
    const limits = isolate();
    await limits.limit("quota", { count: 10 });
    vi.advanceTimersByTime(1000);
    await isolate().reset("quota");
    let at = 1;
    for (const each of calls) {
      vi.advanceTimersByTime((each - at) * 1000);
      at = each;
      expect((await limits.limit("quota")).ok, `${each}`).toBe(each === last);
    }
  },
);

test("nothing is read for a minute after the deletion, in which KV may go on serving what it held", async () => {
  const limits = defineLimits(configs, { store: workersKv(namespace), timeout: 10_000 });
  await limits.limit("quota");
  const deleted = hold("delete");
  const reset = limits.reset("quota");
  vi.advanceTimersByTime(5000);
  deleted();
  await reset;
  const gets = vi.spyOn(namespace, "get");
  vi.advanceTimersByTime(59_999);
  await limits.limit("quota");
  expect(gets).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  await limits.limit("quota");
  expect(gets).toHaveBeenCalledOnce();
});

test("a key is read once a minute, and by each call that is made meanwhile; it is written once a second", async () => {
  const [gets, puts] = [vi.spyOn(namespace, "get"), vi.spyOn(namespace, "put")];
  const limits = isolate();
  await Promise.all([1, 2, 3].map(() => limits.limit("quota")));
  expect([gets.mock.calls.length, puts.mock.calls.length]).toEqual([3, 1]);
  await Promise.all([1, 2, 3].map(() => limits.limit("quota")));
  await vi.advanceTimersByTimeAsync(999);
  await limits.check("quota");
  expect([gets.mock.calls.length, puts.mock.calls.length]).toEqual([3, 1]);
  await vi.advanceTimersByTimeAsync(1);
  await limits.check("quota");
  expect([gets.mock.calls.length, puts.mock.calls.length]).toEqual([3, 2]);
  expect((await isolate().getValue("quota")).value).toBe(4);
});

test("of a burst the first grant is written at once, and the others a second later, without a further call", async () => {
  const puts = vi.spyOn(namespace, "put");
  const limits = isolate();
  for (let i = 0; i < 9; i++) await limits.limit("quota");
  expect((await isolate().getValue("quota")).value).toBe(9);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect((await isolate().getValue("quota")).value).toBe(1);
  await limits.limit("quota");
  await vi.advanceTimersByTimeAsync(1000);
  expect((await isolate().getValue("quota")).value).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(puts).toHaveBeenCalledTimes(3);
});

test("the write at the end of the second is left out after a reset, and after a later write, which has a second of its own", async () => {
  const limits = isolate();
  for (const key of ["reset", "late"]) for (let i = 0; i < 2; i++) await limits.limit("quota", { key });
  const puts = vi.spyOn(namespace, "put");
  await limits.reset("quota", { key: "reset" });
  await vi.advanceTimersByTimeAsync(500);
  // So the timer will be late.
  vi.setSystemTime(Date.now() + 500);
  for (let i = 0; i < 2; i++) await limits.limit("quota", { key: "late" });
  expect(puts).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(999);
  expect(puts).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  const values = ["reset", "late"].map(async (key) => (await isolate().getValue("quota", { key })).value);
  expect(await Promise.all(values)).toEqual([10, 6]);
});

test("if the write at the end of the second fails, nothing is reported, and the next call writes", async () => {
  const limits = isolate();
  for (let i = 0; i < 2; i++) await limits.limit("quota");
  failure = "KV PUT failed: 500 Internal Server Error";
  await vi.advanceTimersByTimeAsync(1000);
  failure = undefined;
  expect((await isolate().getValue("quota")).value).toBe(9);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await limits.limit("quota")).toMatchObject({ ok: true, remaining: 7 });
  expect((await isolate().getValue("quota")).value).toBe(7);
});

test("a host that ends the timer with its request leaves the write to the next call", async () => {
  const limits = isolate();
  for (let i = 0; i < 2; i++) await limits.limit("quota");
  vi.clearAllTimers();
  await vi.advanceTimersByTimeAsync(1000);
  expect((await isolate().getValue("quota")).value).toBe(9);
  for (let i = 0; i < 2; i++) await limits.limit("quota");
  expect((await isolate().getValue("quota")).value).toBe(7);
  await vi.advanceTimersByTimeAsync(1000);
  expect((await isolate().getValue("quota")).value).toBe(6);
});

test("a state expires a minute after it is full, or a year after it was written", async () => {
  const puts = vi.spyOn(namespace, "put");
  const limits = isolate();
  await limits.limit("quota", { key: "today" });
  await limits.block("quota", { key: "years", for: 366 * DAY });
  expect(puts.mock.calls.map(([, , { expirationTtl }]) => expirationTtl)).toEqual([86_400 + 60, 365 * 86_400]);
});

test("a key of more bytes than KV takes is stored under a shorter one", async () => {
  await isolate().limit("quota", { key: "\u20ac".repeat(200), count: 4 });
  expect([...values.keys()].map((key) => new TextEncoder().encode(key).length <= 512)).toEqual([true]);
  expect((await isolate().getValue("quota", { key: "\u20ac".repeat(200) })).value).toBe(6);
});

test("a reset that KV refuses leaves the state", async () => {
  const limits = isolate();
  await limits.limit("quota", { count: 9 });
  failure = "KV DELETE failed: 500 Internal Server Error";
  await expect(limits.reset("quota")).rejects.toThrow("500");
  expect((await limits.getValue("quota")).value).toBe(1);
});

test("a flood of keys evicts no grant that KV does not have yet", async () => {
  const limits = isolate();
  await limits.limit("quota", { key: "victim", count: 5 });
  // Within a second of the last write, so it is not written yet.
  await limits.limit("quota", { key: "victim", count: 5 });
  for (let i = 0; i < 20_001; i++) await limits.limit("quota", { key: `${i}` });
  expect((await limits.limit("quota", { key: "victim" })).ok).toBe(false);
});

test("a flood of keys that are all ahead of KV is written, and leaves a bounded number in memory", async () => {
  const limits = isolate();
  for (let i = 0; i < 12_000; i++) {
    await limits.limit("quota", { key: `${i}`, count: 5 });
    await limits.limit("quota", { key: `${i}`, count: 5 });
  }
  const gets = vi.spyOn(namespace, "get");
  for (let i = 0; i < 12_000; i++) expect((await limits.limit("quota", { key: `${i}` })).ok, `${i}`).toBe(false);
  // At most 10,000 were kept, so the others were read again.
  expect(gets.mock.calls.length).toBeGreaterThanOrEqual(2000);
});

test("a call on a new key does not wait for the write of a key that is evicted", async () => {
  const limits = isolate();
  for (let i = 0; i < 10_000; i++) {
    await limits.limit("quota", { key: `${i}`, count: 5 });
    await limits.limit("quota", { key: `${i}`, count: 5 });
  }
  const puts = vi.spyOn(namespace, "put");
  const written = hold("put");
  const calls = ["a", "b", "c"].map((key) => limits.check("quota", { key }));
  // Longer than a call waits, and shorter than a second, at whose end all keys are written.
  await vi.advanceTimersByTimeAsync(999);
  written();
  for (const call of calls) expect((await call).degraded).toBeUndefined();
  // Each is another key's.
  expect(new Set(puts.mock.calls.map(([key]) => key)).size).toBe(3);
});

test.each(["reset", "getValue", "check"] as const)(
  "%s of many keys leaves a bounded number in memory",
  async (call) => {
    const limits = isolate();
    for (let i = 0; i < 12_000; i++) await limits[call]("quota", { key: `${i}` });
    const gets = vi.spyOn(namespace, "get");
    await limits.limit("quota", { key: "0" });
    expect(gets).toHaveBeenCalledTimes(1);
  },
);

test("shards are refused by every call, several limits together included", async () => {
  const store = workersKv(namespace, { approximate: true });
  const limits = defineLimits({ quota: { ...configs.quota, shards: 2 } }, { store });
  const refused = "`shards` must be 1 on Workers KV";
  await expect(limits.limit("quota")).rejects.toThrow(refused);
  await expect(limits.limitAll([{ name: "quota" }])).rejects.toThrow(refused);
  await expect(limits.reset("quota")).rejects.toThrow(refused);
  await expect(limits.getValue("quota")).rejects.toThrow(refused);
});

test.each([
  ["60 s and a second, where it is full within one", 2, 61],
  ["a year, where it is full later", 1e9, 31_536_000],
])("a state is kept for %s", async (_, count, seconds) => {
  const puts = vi.spyOn(namespace, "put");
  const limits = defineLimits(
    { pace: { kind: "token bucket", rate: 10, period: 1000 } },
    { store: workersKv(namespace) },
  );
  await limits.charge("pace", { count });
  expect(puts.mock.calls.map(([, , options]) => options.expirationTtl)).toEqual([seconds]);
});

test("the host stays alive for a write that takes longer than its caller waits", () => {
  expect(workersKv(namespace).during).toBe(during);
});
