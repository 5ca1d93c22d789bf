import fc from "fast-check";
import { expect, test } from "vitest";
import { jitter } from "../src/index.ts";

test("a client that is denied again gets the same fraction of the remaining wait", () => {
  const added = (retryAfter: number) => (jitter({ retryAt: 1e12, retryAfter }, { key: "ann" }) as number) - 1e12;
  expect(added(60_000)).toBeGreaterThan(0);
  for (const left of [60_000, 30_000, 7000, 0]) {
    expect(Math.abs(added(left) - (added(60_000) * left) / 60_000)).toBeLessThanOrEqual(1);
  }
});

test("a wait that is over is never earlier than the time of the retry", () => {
  expect(jitter({ retryAt: 1e12, retryAfter: -60_000 }, { key: "ann" })).toBe(1e12);
});

const times = fc.record({
  retryAt: fc.integer({ min: 0, max: 2 ** 52 }),
  retryAfter: fc.integer({ min: 0, max: 1e9 }),
});

test("the time is never before retryAt, at most the fraction later, and deterministic", () => {
  fc.assert(
    fc.property(times, fc.string(), fc.double({ min: 0, max: 1, noNaN: true }), (denied, key, fraction) => {
      const at = jitter(denied, { key, fraction }) as number;
      expect(at).toBeGreaterThanOrEqual(denied.retryAt);
      expect(at).toBeLessThanOrEqual(denied.retryAt + denied.retryAfter * fraction);
      expect(Number.isInteger(at)).toBe(true);
      expect(jitter({ ...denied }, { key, fraction })).toBe(at);
    }),
  );
  expect(jitter({}, { key: "k" })).toBeUndefined();
});

test("the times of keys are spread evenly, also of long keys that differ at their end", () => {
  const denied = { retryAt: 1_000_000, retryAfter: 30_000 };
  for (const prefix of ["", "a long common beginning ".repeat(100)]) {
    const tenths = new Array(10).fill(0);
    for (let i = 0; i < 5000; i++) {
      const at = jitter(denied, { key: `${prefix}${i}`, fraction: 1 }) as number;
      tenths[Math.floor((at - denied.retryAt) / 3000)]++;
    }
    // 500 expected; six standard deviations of a binomial are 127.
    for (const tenth of tenths) expect(Math.abs(tenth - 500), `${tenths}`).toBeLessThan(130);
  }
});
