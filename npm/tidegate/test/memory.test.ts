/** The table behind the memory store: its bound, its eviction, and its dump. */
import { describe, expect, test, vi } from "vitest";
import { type Decision, defineLimits, evaluate, HOUR, MINUTE, memory, RateLimitError, SECOND } from "../src/index.ts";
import { type Call, Limit } from "../src/stores/index.ts";
import { fakeClock } from "../src/testing/index.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;

describe("maxKeys", () => {
  test("a flood of new keys does not evict a debtor, and the table stays within maxKeys", () => {
    const store = memory({ maxKeys: 100 });
    const clock = fakeClock();
    const limits = defineLimits({ bucket }, { store, now: clock.now });
    limits.charge("bucket", { key: "debtor", count: 1000 });
    for (let i = 0; i < 20_000; i++) {
      limits.limit("bucket", { key: `flood ${i}` });
      expect(store.stats().keys).toBeLessThanOrEqual(100);
    }
    expect(limits.getValue("bucket", { key: "debtor" }).value).toBe(10 - 1000);
    const { evicted, expired, bytes } = store.stats();
    expect(evicted + expired).toBe(20_001 - 100);
    expect(evicted, "none was full: the clock stood still").toBe(20_001 - 100);
    expect(bytes).toBeLessThan(100 * 32 * 4);
  });

  test("a flood evicts none of the keys that are full later, which are half of a table of many samples", () => {
    const store = memory({ maxKeys: 10_000 });
    const clock = fakeClock();
    const limits = defineLimits({ bucket }, { store, now: clock.now });
    for (let i = 0; i < 5000; i++) limits.limit("bucket", { key: `debtor ${i}`, count: 10 });
    for (let i = 0; i < 100_000; i++) limits.limit("bucket", { key: `flood ${i}` });
    for (let i = 0; i < 5000; i++) expect(limits.getValue("bucket", { key: `debtor ${i}` }).value).toBe(0);
  });

  test("a flood of equally drained keys evicts a debtor, and each eviction is counted", () => {
    const store = memory({ maxKeys: 100 });
    const clock = fakeClock();
    const limits = defineLimits({ bucket }, { store, now: clock.now });
    for (let i = 0; i < 50; i++) limits.limit("bucket", { key: `debtor ${i}`, count: 10 });
    clock.advance(1);
    for (let i = 0; i < 2000; i++) limits.limit("bucket", { key: `flood ${i}`, count: 10 });
    expect(store.stats()).toMatchObject({ keys: 100, evicted: 1950, expired: 0 });
    for (let i = 0; i < 50; i++) expect(limits.getValue("bucket", { key: `debtor ${i}` }).value).toBe(10);
  });

  test("a clock that swings by ten minutes mints nothing while full states are dropped", () => {
    const store = memory();
    let now = 1.8e12;
    const limits = defineLimits({ bucket: { ...bucket, rate: 60, period: MINUTE } }, { store, now: () => now });
    let granted = 0;
    for (let swing = 0; swing < 100; swing++) {
      now = 1.8e12 + swing * 2 * SECOND;
      if (limits.limit("bucket", { key: "hot", count: 60 }).ok) granted += 60;
      now += 10 * MINUTE;
      // A table of 1,000,000 keys has 1,024 parts: each drops full states when it grows.
      for (let i = 0; i < 500; i++) limits.limit("bucket", { key: `${swing} ${i}` });
    }
    expect(store.stats().expired).toBeGreaterThan(10_000);
    // The highest reading is 798 s later than the first.
    expect(granted).toBeLessThanOrEqual(60 + 798);
  });

  test("full states are evicted first, and not counted as evictions", () => {
    const store = memory({ maxKeys: 100 });
    const clock = fakeClock();
    const limits = defineLimits({ bucket, slow: { ...bucket, period: HOUR } }, { store, now: clock.now });
    for (let i = 0; i < 50; i++) limits.limit("slow", { key: `${i}`, count: 10 });
    for (let i = 0; i < 1000; i++) {
      clock.advance(SECOND);
      limits.limit("bucket", { key: `${i}` });
    }
    expect(store.stats().evicted).toBe(0);
    for (let i = 0; i < 50; i++) expect(limits.check("slow", { key: `${i}`, count: 10 }).ok, `${i}`).toBe(false);
  });

  test("denials, checks and refused calls store nothing", () => {
    const store = memory({ maxKeys: 100 });
    const limits = defineLimits({ bucket }, { store, now: fakeClock().now });
    for (let i = 0; i < 100; i++) limits.charge("bucket", { key: `debtor ${i}`, count: 100 });
    for (let i = 0; i < 1000; i++) {
      expect(limits.limit("bucket", { key: `${i}`, count: 11 }).ok).toBe(false);
      expect(limits.check("bucket", { key: `${i}` }).ok).toBe(true);
      expect(limits.limit("bucket", { key: `${i}`, count: 0 }).ok).toBe(true);
      limits.give("bucket", { key: `${i}`, count: 5 });
      limits.getValue("bucket", { key: `${i}` });
    }
    expect(store.stats()).toMatchObject({ keys: 100, evicted: 0, expired: 0 });
  });
});

test("a call of several limits that is refused in the middle leaves nothing for the next one", () => {
  const [store, limit, now] = [memory(), new Limit("bucket", bucket), fakeClock().now()];
  const call = (key: string, count: number): Call => ({ op: "take", limit, key, count, reserve: false });
  expect(() => store.decideAll([call("a", 1), call("b", -1)], now)).toThrow("`count` must be");
  store.decideAll([call("c", 1)], now);
  expect(["a", "b", "c"].map((key) => store.getValue(limit, key, now).value)).toEqual([10, 10, 9]);
});

describe("dump and restore", () => {
  test("every decision is the same after a restore", () => {
    const clock = fakeClock();
    const configs = {
      bucket,
      window: { kind: "fixed window", rate: 7, period: HOUR },
      parts: { ...bucket, shards: 4 },
    } as const;
    const store = memory({ maxKeys: 10_000 });
    const limits = defineLimits(configs, { store, now: clock.now });
    for (let i = 0; i < 2000; i++) {
      clock.advance(3);
      limits.charge((["bucket", "window", "parts"] as const)[i % 3] as "bucket", {
        key: `k${i % 300}`,
        count: (i % 11) + 0.1,
      });
    }
    const copy = defineLimits(configs, { store: memory({ maxKeys: 10_000, restore: store.dump() }), now: clock.now });
    for (let i = 0; i < 300; i++) {
      for (const name of ["bucket", "window", "parts"] as const) {
        expect(copy.getValue(name, { key: `k${i}` })).toEqual(limits.getValue(name, { key: `k${i}` }));
      }
    }
    expect(copy.store.stats().keys).toBe(store.stats().keys);
  });

  test("a dump of more than maxKeys keys keeps the debtors", () => {
    const store = memory();
    const clock = fakeClock();
    const limits = defineLimits({ bucket }, { store, now: clock.now });
    for (let i = 0; i < 500; i++) limits.charge("bucket", { key: `${i}`, count: i < 5 ? 10_000 : 1 });
    const copy = defineLimits({ bucket }, { store: memory({ maxKeys: 50, restore: store.dump() }), now: clock.now });
    expect(copy.store.stats().keys).toBe(50);
    for (let i = 0; i < 5; i++) expect(copy.getValue("bucket", { key: `${i}` }).value).toBe(10 - 10_000);
  });

  test("incomplete or damaged bytes are refused", () => {
    const store = memory();
    const limits = defineLimits({ bucket }, { store });
    for (let i = 0; i < 20; i++) limits.limit("bucket", { key: `${i}` });
    const dump = store.dump();
    const refused = (bytes: Uint8Array) =>
      expect(() => memory({ restore: bytes })).toThrow(
        "`restore` must be all bytes of a dump; got [object Uint8Array]",
      );
    for (const length of [0, 1, 39, 41, dump.length - 1, dump.length - 32]) refused(dump.slice(0, length));
    refused(Uint8Array.of(...dump, 0));
    for (let at = 0; at < dump.length; at++) {
      const damaged = dump.slice();
      damaged[at] = (damaged[at] as number) ^ (1 << (at % 8));
      refused(damaged);
    }
    expect(memory({ restore: dump }).stats().keys).toBe(20);
  });
});

test("a clock of -0 decides as one of 0, as in stores on a server", () => {
  const limits = defineLimits({ bucket }, { now: () => -0 });
  const all = limits.limitAll([{ name: "bucket" }]).decisions[0];
  const evaluated = evaluate(null, bucket, { now: -0 }).decision;
  for (const { now, ts } of [limits.limit("bucket"), limits.check("bucket"), all as Decision, evaluated])
    expect([now, ts]).toEqual([0, 0]);
});

describe("the default clock", () => {
  test("follows mocked time", () => {
    vi.useFakeTimers({ now: 5_000_000 });
    const limits = defineLimits({ one: { kind: "token bucket", rate: 1, period: SECOND } });
    expect(limits.limit("one")).toMatchObject({ ok: true, now: 5_000_000 });
    expect(limits.limit("one")).toMatchObject({ ok: false, retryAt: 5_001_000, retryAfter: 1000 });
    vi.advanceTimersByTime(999);
    expect(limits.limit("one").ok).toBe(false);
    vi.advanceTimersByTime(1);
    expect(limits.limit("one").ok).toBe(true);
    vi.setSystemTime(9_000_000);
    expect(limits.getValue("one")).toMatchObject({ value: 1, ts: 9_000_000 });
  });

  test("leaves no timer", () => {
    vi.useFakeTimers();
    const limits = defineLimits({ one: bucket });
    for (let i = 0; i < 100; i++) limits.limit("one", { key: `${i}` });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("throws", () => {
  const clock = fakeClock(1_000_000);
  const limits = defineLimits({ one: { kind: "token bucket", rate: 1, period: SECOND } }, { now: clock.now });

  test("a denial throws an error that has retryAt", () => {
    expect(limits.limit("one", { throws: true }).ok).toBe(true);
    for (const op of ["limit", "check"] as const) {
      try {
        limits[op]("one", { throws: true });
        expect.unreachable();
      } catch (error) {
        expect(error).toBeInstanceOf(RateLimitError);
        expect(error).toMatchObject({
          kind: "RateLimited",
          code: "TIDEGATE_RATE_LIMITED",
          limit: "one",
          retryAt: 1_001_000,
          retryAfter: 1000,
        });
        expect((error as Error).message).toBe('rate limited by "one": retry in 1000 ms');
        expect(JSON.parse(JSON.stringify(error))).toEqual({
          kind: "RateLimited",
          name: "one",
          retryAt: 1_001_000,
          retryAfter: 1000,
        });
      }
    }
    expect(() => limits.limit("one", { count: 2, throws: true })).toThrow('rate limited by "one": exceeds capacity');
    expect(limits.limit("one", { throws: false }).ok).toBe(false);
  });
});
