/** The views of the engine's memory stay valid when a call grows the memory, in every form of the engine. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Engine } from "../src/engine/engine.ts";
import type { Exports } from "../src/engine/exports.ts";
import { VERSION } from "../src/engine/generated/bounds.ts";
import { INPUT_ERROR, OPS } from "../src/engine/generated/wire.ts";

const HOSTS = {
  "speed, inlined": () => import("../src/engine/host-node.ts"),
  "small, inlined": () => import("../src/engine/host-inline.ts"),
  "pure.js": () => import("../src/engine/host-pure.ts"),
};
const MIB = 2 ** 20;
const FIVE_A_SECOND = [5, 1000, Number.NaN, Number.NaN, Number.NaN, Number.NaN];

/** Grows a memory to its limit, by pages that the allocator does not have. */
function takeAll(memory: WebAssembly.Memory): void {
  for (let pages = 2 ** 15; pages >= 1; ) {
    try {
      memory.grow(pages);
    } catch {
      pages /= 2;
    }
  }
}

describe.each(Object.entries(HOSTS))("%s", (_, host) => {
  let engine: Engine;
  let limit: number;

  // The glue holds one instance, and each host needs its own.
  beforeEach(async () => {
    vi.resetModules();
    const { load } = await host();
    const { Engine } = await import("../src/engine/engine.ts");
    engine = new Engine(load);
    engine.numbers.set(FIVE_A_SECOND);
    limit = engine.wasm.limit_new(0, engine.writeKey("login"), 0);
    expect(limit).toBeGreaterThanOrEqual(0);
  });

  const grow = () => {
    const before = engine.wasm.memory.buffer.byteLength;
    engine.wasm.room(before + MIB);
    expect(engine.wasm.memory.buffer.byteLength).toBeGreaterThan(before);
  };

  test("reads the numbers of a call after the memory has grown", () => {
    grow();
    engine.numbers.set(FIVE_A_SECOND);
    const status = engine.wasm.evaluate(0, 0, 3, 0, 0, 1, OPS.take);
    expect(status).toBeLessThan(INPUT_ERROR);
    expect([...engine.numbers.subarray(0, 3)]).toEqual([2, 0, 2]);
  });

  test.each(["short", "k".repeat(100), "k\ud800"])("writes the key %j after the memory has grown", (key) => {
    const table = engine.wasm.table_new(10);
    const decide = () => engine.wasm.decide(table, limit, engine.writeKey(key), 0, 1, OPS.take);
    decide();
    grow();
    decide();
    expect(engine.numbers[2]).toBe(3);
  });

  test("reads the numbers of each call while the table grows the memory", () => {
    engine.writeBytes(crypto.getRandomValues(new Uint8Array(16)));
    const table = engine.wasm.table_new(1_000_000);
    let grown = 0;
    let before = engine.wasm.memory.buffer.byteLength;
    for (let i = 0; grown < 3; i++) {
      engine.wasm.decide(table, limit, engine.writeKey(`user:${i}`), 0, 1, OPS.take);
      if (engine.numbers[0] !== 4) expect(engine.numbers[0], `key ${i}`).toBe(4);
      const { byteLength } = engine.wasm.memory.buffer;
      if (byteLength !== before) grown++;
      before = byteLength;
    }
  });
});

test("reads doubles and bytes at an address of 2 GiB, which WebAssembly returns as a negative number", async () => {
  const { Engine } = await import("../src/engine/engine.ts");
  const { doublesAt } = await import("../src/engine/algebra.ts");
  const memory = new WebAssembly.Memory({ initial: 2 ** 15 + 1 });
  const engine = new Engine(() => ({ memory, key_at: () => 0, numbers_at: () => 2048 }) as Partial<Exports> as Exports);
  new DataView(memory.buffer).setFloat64(2 ** 31, 7, true);
  expect(doublesAt(engine.wasm, -(2 ** 31), 1)[0]).toBe(7);
  expect(engine.bytes(-(2 ** 31), 8)[7]).toBe(64);
});

test("on a server, a table that has taken all memory leaves some for other calls, limits and tables", async () => {
  vi.resetModules();
  const { load } = await import("../src/engine/host-node.ts");
  const { Engine } = await import("../src/engine/engine.ts");
  const engine = new Engine(load);
  const { wasm } = engine;
  const limitOf = (table: number, name: string): number => {
    engine.numbers.set(FIVE_A_SECOND);
    return wasm.limit_new(table, engine.writeKey(name), 0);
  };
  const take = (table: number, limit: number, key: string) =>
    wasm.decide(table, limit, engine.writeKey(key), 0, 1, OPS.take);
  const table = wasm.table_new(100_000);
  const limit = limitOf(table, "login");
  const flood = (from: number, to: number): void => {
    for (let i = from; i < to; i++) take(table, limit, `user:${i}`);
  };
  flood(0, 20_000);
  takeAll(wasm.memory);
  flood(20_000, 80_000);
  wasm.stats(table);
  const [keys = 0, , evicted = 0] = engine.numbers;
  expect(keys + evicted).toBe(80_000);
  expect(evicted).toBeGreaterThan(0);
  wasm.all_clear();
  for (let i = 0; i < 100; i++) wasm.all_stage(limit, engine.writeKey(`other:${i}`), 1, 0);
  expect(wasm.all_commit(table, 0, 1)).toBeLessThan(INPUT_ERROR);
  const second = wasm.table_new(1_000_000);
  const limits = Array.from({ length: 100 }, (_, i) => limitOf(second, `limit ${i}`));
  for (const [i, another] of limits.entries()) {
    take(second, another, `user:${i}`);
    expect(engine.numbers[0]).toBe(4);
  }
});

test("on a server, a dump for which there is no memory throws, and the store decides as before", async () => {
  vi.resetModules();
  const { load } = await import("../src/engine/host-node.ts");
  const { Engine } = await import("../src/engine/engine.ts");
  const { defineLimits, memory } = await import("../src/index.ts");
  // Not the engine of this thread, which other tests need.
  const engine = new Engine(load);
  vi.stubGlobal(Symbol.for(`tidegate engine ${VERSION}`) as unknown as string, engine);
  const store = memory();
  const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: 1000 } }, { store, now: () => 0 });
  for (let i = 0; i < 80_000; i++) limits.limit("login", { key: `user:${i}` });
  takeAll(engine.wasm.memory);
  expect(() => store.dump()).toThrow("no memory for a dump");
  expect(limits.limit("login", { key: "user:0" }).value).toBe(3);
  expect(store.stats().keys).toBe(80_000);
});

test("the engine of Node.js loads where there is no Buffer, as in a page for which Metro resolved a require", async () => {
  vi.stubGlobal("Buffer", undefined);
  vi.resetModules();
  try {
    const { load } = await import("../src/engine/host-node.ts");
    expect(load().memory.buffer.byteLength).toBeGreaterThan(0);
  } finally {
    vi.unstubAllGlobals();
  }
});
