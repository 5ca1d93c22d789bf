/** Several requests on one limit and key in one limitAll are one store call for their sum. */
import { describe, expect, test } from "vitest";
import { defineLimits, memory, MINUTE } from "../src/index.ts";
import type { Call, SyncStore } from "../src/stores/index.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE, maxReserved: 5 } as const;
const configs = { one: bucket, two: bucket };

function limiter() {
  const own = memory();
  const calls: Pick<Call, "key" | "count" | "reserve">[][] = [];
  const store: SyncStore = {
    name: "recording",
    sync: true,
    decide: (call, now) => own.decide(call, now),
    decideAll(all, now) {
      calls.push(all.map(({ key, count, reserve }) => ({ key, count, reserve })));
      return own.decideAll(all, now);
    },
    reset: (limit, key) => own.reset(limit, key),
    getValue: (limit, key, now) => own.getValue(limit, key, now),
  };
  return { calls, limits: defineLimits(configs, { store, now: () => 5000 }) };
}

describe("requests on one limit and key", () => {
  test("are one call for their sum, and each gets its decision", () => {
    const { calls, limits } = limiter();
    const all = limits.limitAll([
      { name: "one", key: "a", count: 2 },
      { name: "two", key: "a" },
      { name: "one", key: "a", count: 3 },
      { name: "one", key: "b" },
    ]);
    expect(calls).toEqual([
      [
        { key: "a", count: 5, reserve: false },
        { key: "a", count: 1, reserve: false },
        { key: "b", count: 1, reserve: false },
      ],
    ]);
    expect(all.decisions.map(({ value }) => value)).toEqual([5, 9, 5, 9]);
  });

  test("may reserve only if each of them sets reserve", () => {
    const { limits } = limiter();
    const [owing, not] = [{ name: "one", count: 6, reserve: true } as const, { name: "one", count: 6 } as const];
    expect(limits.limitAll([owing, not])).toMatchObject({ ok: false });
    expect(limits.limitAll([not, owing])).toMatchObject({ ok: false });
    expect(limits.limitAll([owing, owing])).toMatchObject({ ok: true, decisions: [{ value: -2 }, { value: -2 }] });
  });

  test("with different configs are refused", () => {
    const { calls, limits } = limiter();
    const other = { ...bucket, rate: 20 };
    expect(() => limits.limitAll([{ name: "one" }, { name: "one", config: other }])).toThrow(
      '`config` must be the same in all requests on "one"; got ',
    );
    expect(calls).toEqual([]);
    expect(limits.limitAll([{ name: "one" }, { name: "one", config: { ...bucket } }]).ok).toBe(true);
  });
});
