/** How a limit computes on the states of its shards, for stores that keep their rows apart. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { State } from "../src/limit/decision.ts";
import { Limit } from "../src/limit/limit.ts";
import { better, pick, pool, sum } from "../src/limit/shards.ts";

const of = (shards: number) => new Limit("parts", { kind: "token bucket", rate: 24, period: 3_600_000, shards });
const NOW = 1_000_000;

test("pick returns two distinct shards, and each ordered pair equally often", () => {
  for (const shards of [2, 3, 7, 10]) {
    const pairs = shards * (shards - 1);
    const picked = Array.from({ length: pairs }, (_, i) => pick(of(shards), (i + 0.5) / pairs));
    expect(new Set(picked.map(String)).size).toBe(pairs);
  }
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 2, max: 65_536 }), (random, shards) => {
      const [first, second] = pick(of(shards), random);
      expect(first).not.toBe(second);
      for (const shard of [first, second]) expect(Number.isInteger(shard) && shard >= 0 && shard < shards).toBe(true);
    }),
  );
});

test("better takes from the fuller shard, from the first of equals, and never lends", () => {
  const limit = of(2);
  const at = (value: number): State => ({ value, ts: NOW });
  const take = (a: State | null, b: State | null, count: number, op: "take" | "check" = "take") =>
    better(limit, [a, b], { op, count, reserve: true }, NOW, 0);
  expect(take(at(3), at(5), 4)).toMatchObject({
    which: 1,
    state: at(1),
    decision: { ok: true, value: 4, remaining: 4 },
  });
  expect(take(at(5), at(5), 1)).toMatchObject({ which: 0, state: at(4) });
  expect(take(null, at(5), 2)).toMatchObject({ which: 0, state: at(10), decision: { value: 15 } });
  expect(take(at(5), at(1), 2, "check")).toMatchObject({ which: 0, state: at(5), decision: { ok: true } });
  expect(take(at(3), at(5), 6).decision.ok).toBe(false);
});

test("of two shards the decision has the later ts, and the later resetAt", () => {
  const pairs = [
    [null, { value: 1, ts: NOW + 5000 }],
    [{ value: 1, ts: NOW + 5000 }, null],
  ] as const;
  for (const pair of pairs) {
    const { decision } = better(of(2), pair, { op: "take", count: 1, reserve: false }, NOW, 0);
    // The emptier shard gets 12 tokens an hour, from its ts on.
    expect(decision).toMatchObject({ ok: true, value: 12, ts: NOW + 5000, resetAt: NOW + 5000 + 55 * 60_000 });
  }
});

test("a pool grants what all shards hold together, in equal parts, and sums up what is left", () => {
  const limit = of(3);
  const states = [{ value: 8, ts: NOW }, { value: 1, ts: NOW }, null];
  const take = (count: number) => pool(limit, states, { op: "take", count, reserve: false }, NOW, 0);
  const { decision, states: after } = take(17);
  expect([decision.ok, decision.value]).toEqual([true, 0]);
  expect(after).toEqual(Array(3).fill({ value: 0, ts: NOW }));
  expect(take(17.5)).toMatchObject({ decision: { ok: false, value: 17 }, states: undefined });
  expect(sum(limit, states, NOW, 0)).toEqual({ value: 17, ts: NOW });
});
