/** How a limiter handles a synchronous store that throws. */
import { expect, test } from "vitest";
import { type Config, defineLimits, type OnStoreError } from "../src/index.ts";
import type { SyncStore } from "../src/stores/contract.ts";

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

test("a synchronous store throws its error if no decision can replace it", () => {
  expect(() => limits().reset("one")).toThrow("the disk is gone");
  expect(() => limits().getValue("one")).toThrow("the disk is gone");
  expect(() => limits("allow").limit("one", { count: -1 })).toThrow("`count` must be");
});
