// Promises of reference/promises.md that fit no other test file.
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, test, vi } from "vitest";
import {
  type Decision,
  defineLimits,
  isStoreError,
  memory,
  MINUTE,
  SECOND,
  type State,
} from "../../npm/tidegate/src/index.ts";
import { type Transaction, transactional } from "../../npm/tidegate/src/stores/index.ts";
import { root } from "./blocks.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;

describe("in memory", () => {
  // The debtor's place in the table is random, so one run may succeed by chance.
  test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
    "a flood of new keys does not evict a debtor, and memory holds at most maxKeys",
    () => {
      const store = memory({ maxKeys: 1000 });
      let now = 1e12;
      const limits = defineLimits({ api: bucket }, { store, now: () => now });
      limits.charge("api", { key: "debtor", count: 100 });
      for (let i = 0; i < 100_000; i++) limits.limit("api", { key: `flood ${i}` });
      const { keys, maxKeys, evicted } = store.stats();
      expect(maxKeys).toBe(1000);
      expect(keys).toBeLessThanOrEqual(1000);
      expect(evicted).toBeGreaterThan(0);
      expect(limits.limit("api", { key: "debtor" })).toMatchObject({ ok: false, value: -90 });
      now += 10 * MINUTE;
      expect(limits.limit("api", { key: "debtor" }).ok).toBe(true);
    },
  );

  test("a process that used a limiter exits by itself", async () => {
    const program = `
      import { defineLimits, MINUTE } from "tidegate";
      import { transactional } from "tidegate/store";
      const rows = new Map();
      const tx = { get: (id) => rows.get(id) ?? null, set: (id, state) => void rows.set(id, state) };
      const asynchronous = transactional({ name: "map", transaction: async (body) => body(tx) });
      for (const store of [undefined, asynchronous]) {
        const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: MINUTE } }, { store });
        console.log((await limits.limit("api", { key: "a" })).ok);
      }`;
    const args = ["--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout: 120_000 });
    expect(stdout).toBe("true\ntrue\n");
  });
});

describe("when the store is down", () => {
  /** A store over a Map whose transactions succeed, fail or never end, as `how` is set. */
  function fragile() {
    const rows = new Map<string, State>();
    const tx: Transaction = {
      get: (id) => rows.get(id) ?? null,
      set: (id, state) => void rows.set(id, state),
      delete: (id) => void rows.delete(id),
    };
    const self = { how: "well" as "well" | "never" | "fails", calls: 0 };
    const store = transactional({
      name: "fragile",
      transaction: (body) => {
        self.calls++;
        if (self.how === "fails") return Promise.reject(new Error("connection refused"));
        return self.how === "never" ? new Promise(() => {}) : body(tx);
      },
    });
    return Object.assign(self, { store });
  }

  test("a store that never answers delays calls by the deadline, and later calls not at all", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const fault = fragile();
    const limits = defineLimits(
      { closed: bucket, open: { ...bucket, onStoreError: "allow" }, half: { ...bucket, onStoreError: { local: 0.5 } } },
      { store: fault.store, timeout: 50 },
    );
    /** A call's decision, which comes after so many ms and not before. */
    const answeredAfter = async (ms: number, name: "closed" | "open" | "half"): Promise<Decision> => {
      let settled = false;
      const decision = limits.limit(name).finally(() => {
        settled = true;
      });
      await vi.advanceTimersByTimeAsync(ms - 1);
      expect(settled).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      expect(settled).toBe(true);
      return decision;
    };
    expect(await limits.limit("closed")).toMatchObject({ ok: true });
    fault.how = "never";
    const closed = await answeredAfter(50, "closed");
    expect(closed).toMatchObject({ ok: false, degraded: true });
    expect(isStoreError(closed.cause)).toBe(true);
    expect((closed.cause as Error).message).toContain("`transaction` did not run its argument before the deadline");
    expect(await answeredAfter(50, "open")).toMatchObject({ ok: true, degraded: true });
    // From the fifth failure on the breaker is open.
    for (let i = 0; i < 3; i++) {
      expect(await answeredAfter(50, "half")).toMatchObject({ ok: true, degraded: true, limit: 5 });
    }
    const before = fault.calls;
    for (let i = 0; i < 2; i++) {
      expect(await limits.limit("half")).toMatchObject({ ok: true, degraded: true, limit: 5 });
    }
    expect(await limits.limit("half")).toMatchObject({ ok: false, degraded: true, remaining: 0 });
    const all = await Promise.all(Array.from({ length: 1000 }, () => limits.limit("closed")));
    expect(all.every(({ ok, degraded }) => !ok && degraded === true)).toBe(true);
    expect(fault.calls).toBe(before);
    expect(String(all[0]?.cause)).toContain("it has failed repeatedly");
  });

  test("a store that recovers is called again", async () => {
    const fault = fragile();
    const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: SECOND } }, { store: fault.store });
    fault.how = "fails";
    for (let i = 0; i < 20; i++) {
      expect(await limits.limit("api")).toMatchObject({ ok: false, degraded: true });
    }
    expect(fault.calls).toBeLessThan(20);
    fault.how = "well";
    let decision = await limits.limit("api");
    for (let i = 0; i < 400 && decision.degraded === true; i++) {
      await sleep(25);
      decision = await limits.limit("api");
    }
    expect(decision).toMatchObject({ ok: true, remaining: 9 });
    expect(decision.degraded).toBeUndefined();
  });

  test("getValue and reset reject with the store's error", async () => {
    const fault = fragile();
    const limits = defineLimits({ api: bucket }, { store: fault.store });
    fault.how = "fails";
    await expect(limits.getValue("api")).rejects.toThrow('fragile: getValue of "api" failed: connection refused');
    await expect(limits.reset("api", { key: "a" })).rejects.toThrow('fragile: reset of "api:a" failed');
  });
});
