/** How a limiter handles a synchronous store that throws. */
import { expect, test, vi } from "vitest";
import { type Config, defineLimits, InputError, type OnStoreError } from "../src/index.ts";
import type { Shortcuts, SyncStore } from "../src/stores/contract.ts";
import { MemoryStore } from "../src/stores/memory.ts";

const bucket = { kind: "token bucket", rate: 10, period: 1000, capacity: 10 } as const satisfies Config;

const failing = (): SyncStore => {
  const fail = (): never => {
    throw new Error("the disk is gone");
  };
  return { name: "local", sync: true, decide: fail, decideAll: fail, reset: fail, getValue: fail };
};
const limits = (onStoreError?: OnStoreError) =>
  defineLimits({ one: bucket, two: bucket }, { store: failing(), onStoreError });

test("a synchronous store that throws is replaced synchronously, as `onStoreError` sets", () => {
  const denied = limits().limit("one");
  expect(denied).toMatchObject({ ok: false, degraded: true });
  expect((denied.cause as Error).message).toBe("the disk is gone");
  expect(limits("allow").limit("one")).toMatchObject({ ok: true, degraded: true });
  const local = limits({ local: 0.5 });
  const granted = Array.from({ length: 8 }, () => local.limit("one")).filter(({ ok }) => ok);
  expect(granted).toHaveLength(5);
  expect(limits("allow").limitAll([{ name: "one" }, { name: "two" }])).toMatchObject({ ok: true, degraded: true });
  expect(
    limits("allow")
      .limitMany("one", ["a", "b"])
      .map(({ ok }) => ok),
  ).toEqual([true, true]);
});

test("where a synchronous store throws, a reservation stays one in the local limit, also on the path without a call object", () => {
  const decideFast = (): never => {
    throw new Error("the disk is gone");
  };
  for (const store of [failing(), { ...failing(), decideFast } as SyncStore]) {
    const local = defineLimits({ one: bucket }, { store, onStoreError: { local: 1 }, now: () => 1_000_000 });
    local.limit("one", { count: 10 });
    const reserved = local.limit("one", { count: 5, reserve: true });
    expect(reserved).toMatchObject({ ok: true, reserved: true, retryAfter: 500, degraded: true });
    expect(local.limit("one", { count: 5 })).toMatchObject({ ok: false, reserved: false });
  }
});

/** Fails until it is repaired; `isFast`: it decides without a call object, too. */
function repaired(isFast: boolean) {
  const own = new MemoryStore({});
  let fails = true;
  const unlessBroken = <D>(run: () => D): D => {
    if (fails) throw new Error("the disk is gone");
    return run();
  };
  const decide: SyncStore["decide"] = (call, now) => unlessBroken(() => own.decide(call, now));
  const decideFast: NonNullable<Shortcuts["decideFast"]> = (...given) => unlessBroken(() => own.decideFast(...given));
  const store = { ...failing(), decide, ...(isFast && { decideFast }) } as SyncStore;
  return { store, repair: () => (fails = false) };
}

test.each([false, true])("a synchronous store that decides again is logged; without a call object: %j", (isFast) => {
  const { store, repair } = repaired(isFast);
  const lines: string[] = [];
  const log = { error: (line: string) => lines.push(line), info: (line: string) => lines.push(line) };
  const limiter = defineLimits({ one: bucket }, { store, log });
  limiter.limit("one");
  repair();
  for (let i = 0; i < 2; i++) expect(limiter.limit("one")).not.toHaveProperty("degraded");
  expect(lines.slice(1)).toEqual(["tidegate: local answers again"]);
});

test("calls that are decided alike are named once in the log", () => {
  const lines: string[] = [];
  const log = { error: (line: string) => lines.push(line), info: () => {} };
  defineLimits({ one: bucket, two: bucket }, { store: failing(), log }).limitAll([{ name: "one" }, { name: "two" }]);
  expect(lines).toEqual([expect.stringMatching(/its calls are denied[^,]*$/)]);
});

test("a mistake that a synchronous store finds is thrown, and no failure of it", () => {
  const error = new InputError("reserve", "absent", true);
  const decide = (): never => {
    throw error;
  };
  const log = vi.spyOn(console, "error");
  const limiter = defineLimits(
    { one: bucket },
    { store: { ...failing(), decide } as SyncStore, onStoreError: "allow" },
  );
  expect(() => limiter.limit("one")).toThrow(error);
  expect(log).not.toHaveBeenCalled();
});

test("a synchronous store throws its error if no decision can replace it", () => {
  expect(() => limits().reset("one")).toThrow("the disk is gone");
  expect(() => limits().getValue("one")).toThrow("the disk is gone");
  expect(() => limits("allow").limit("one", { count: -1 })).toThrow("`count` must be");
});
