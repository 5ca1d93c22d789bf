import { expect, test } from "vitest";
import { jitter } from "../src/index.ts";

test("a client that asks again gets the same part of the wait that is left", () => {
  const added = (retryAfter: number) => (jitter({ retryAt: 1e12, retryAfter }, { key: "ann" }) as number) - 1e12;
  expect(added(60_000)).toBeGreaterThan(0);
  for (const left of [60_000, 30_000, 7000, 0]) {
    expect(Math.abs(added(left) - (added(60_000) * left) / 60_000)).toBeLessThanOrEqual(1);
  }
});

test("a wait that is over is never earlier than the time of the retry", () => {
  expect(jitter({ retryAt: 1e12, retryAfter: -60_000 }, { key: "ann" })).toBe(1e12);
});
