/** The contract of a store, and all vectors, on a folder. */
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { defineLimits } from "tidegate";
import { type FileStore, file } from "tidegate/file";
import { storeSuite } from "tidegate/testing";
import { runVector } from "../../../npm/tidegate/src/testing/vectors.ts";
import { vectors } from "../vectors.ts";
import { clear, folder } from "./fixture.ts";

afterAll(clear);

storeSuite({
  test,
  describe,
  create: () => file(folder(), { maxKeys: 10_000 }),
  destroy: (store) => (store as FileStore).close(),
});

// Each history begins at an earlier clock than the one before it ends. In a folder where states of that one were dropped,
// its fresh keys would be full as of their instant, so each has a folder of its own.
describe("vectors", () => {
  for (const [name, { vectors: all }] of Object.entries(vectors)) {
    const run = all.filter((vector) => vector.steps !== undefined);
    if (run.length === 0) continue;
    test(`${name}: ${run.length} histories, to the bit`, async () => {
      const wrong: string[] = [];
      for (const vector of run) {
        const store = file(folder(), { maxKeys: 1000 });
        // Its types are those of the source.
        wrong.push(...(await runVector(store as never, vector)));
        store.close();
        clear();
      }
      expect(wrong).toEqual([]);
    });
  }
});

const NOW = 1_800_000_000_000;
const bucket = { kind: "token bucket", rate: 1, period: 3_600_000, capacity: 10 } as const;

describe("a folder", () => {
  const opened = (path: string, options?: Parameters<typeof file>[1]): FileStore => {
    const store = file(path, options);
    onTestFinished(() => store.close());
    return store;
  };

  test("decides synchronously, and keeps what was taken when it is opened again", () => {
    const path = folder();
    const store = opened(path);
    const limits = defineLimits({ one: bucket }, { store, now: () => NOW });
    const d = limits.limit("one", { key: "ann", count: 4 });
    expect([d.ok, d.value, store.name, store.sync]).toEqual([true, 6, "file", true]);
    store.close();
    const again = defineLimits({ one: bucket }, { store: opened(path), now: () => NOW });
    expect(again.check("one", { key: "ann", count: 6 }).ok).toBe(true);
    expect(again.limit("one", { key: "ann", count: 7 }).ok).toBe(false);
    expect(again.limit("one", { key: "ann", count: 6 }).ok).toBe(true);
  });

  test("opened twice in one process has one state", () => {
    const path = folder();
    const two = [opened(path), opened(path)].map((store) => defineLimits({ one: bucket }, { store, now: () => NOW }));
    const granted = Array.from({ length: 20 }, (_, i) => two[i % 2]?.limit("one").ok).filter(Boolean);
    expect(granted).toHaveLength(10);
  });

  test("limitMany is one transaction, and each decides by itself", () => {
    const store = opened(folder());
    const limits = defineLimits({ one: bucket }, { store, now: () => NOW });
    const decisions = limits.limitMany("one", ["a", "b", "a", "a", ...Array(9).fill("b")], { count: 2 });
    expect(decisions.map(({ ok }) => ok)).toEqual(
      [...Array(8).fill(true), false, false, false, false, false].slice(0, 13),
    );
    expect(store.stats()).toMatchObject({ keys: 2, maxKeys: 100_000, evicted: 0, syncError: undefined });
  });

  test("a fractional clock is floored in each decision", () => {
    const limits = defineLimits({ one: bucket }, { store: opened(folder()), now: () => NOW + 0.7 });
    const decisions = [
      limits.limit("one"),
      limits.check("one", { count: 20 }),
      ...limits.limitAll([{ name: "one" }]).decisions,
      ...limits.limitMany("one", ["a"]),
    ];
    expect(decisions.map(({ now }) => now)).toEqual([NOW, NOW, NOW, NOW]);
  });

  test("a flood of new keys stays within maxKeys, and a debtor is not forgotten", () => {
    const store = opened(folder(), { maxKeys: 1000 });
    const limits = defineLimits({ one: bucket }, { store, now: () => NOW });
    for (let i = 0; i < 10; i++) limits.charge("one", { key: `debtor ${i}`, count: 50 });
    const flood = Array.from({ length: 20_000 }, (_, i) => `flood ${i}`);
    expect(limits.limitMany("one", flood).every(({ ok }) => ok)).toBe(true);
    const { keys, evicted, expired } = store.stats();
    expect(keys).toBeLessThanOrEqual(1000);
    expect(keys + evicted + expired).toBe(20_010);
    for (let i = 0; i < 10; i++) expect(limits.limit("one", { key: `debtor ${i}` }).ok, `debtor ${i}`).toBe(false);
  });

  test("is opened again without settings or with the same, and refuses others", () => {
    const path = folder();
    const store = opened(path, { maxKeys: 77, sync: "always" });
    expect(opened(path).stats().maxKeys).toBe(77);
    expect(() => file(path, { maxKeys: 78 })).toThrow("it is open with `maxKeys` 77, and 78 was requested");
    expect(() => file(path, { sync: "5s" })).toThrow("it is open with `sync` always, and every 5000 ms was requested");
    const limits = defineLimits({ one: bucket }, { store });
    expect(limits.limit("one").ok).toBe(true);
  });

  test.each([
    [[""], "`path` must be the path of a folder"],
    [[7], "`path` must be the path of a folder"],
    [[new URL("https://example.com/")], "`path` must be the path of a folder"],
    [["x", { maxKeys: 0 }], "`maxKeys` must be an integer from 1 to 16777216; got 0"],
    [
      ["x", { sync: 0 }],
      '`sync` must be "always", or an integer of ms from 1 to 2147483647, or a string such as "30s"; got 0',
    ],
    [["x", { sync: "never" }], '`sync` must be "always", or'],
    [["x", { size: 1 }], "size"],
    [["x", null], "`options` must be an object with any of maxKeys, sync; got null"],
  ])("refuses %j before anything is made", (args, rule) => {
    expect(() => file(...(args as Parameters<typeof file>))).toThrow(rule);
  });
});
