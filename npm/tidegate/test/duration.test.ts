import { expect, test } from "vitest";
import { defineLimits } from "../src/index.ts";
import { inMs } from "../src/limit/duration.ts";

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["15m", 900_000],
  ["1.5h", 5_400_000],
  ["1d", 86_400_000],
  ["2w", 1_209_600_000],
  [250, 250],
  ["1 minute", "1 minute"],
  ["-1m", "-1m"],
  ["1M", "1M"],
  ["", ""],
])("%j is %j ms", (duration, ms) => {
  expect(inMs(duration)).toBe(ms);
});

test("a limit's period as a text is the same limit", () => {
  const { policy } = defineLimits({ api: { kind: "token bucket", rate: 5, period: "15m" } }).limit("api");
  expect(policy.period).toBe(900_000);
});

test("a text without a unit that exists is an error", () => {
  const define = (period: string) => defineLimits({ api: { kind: "token bucket", rate: 5, period: period as "1m" } });
  expect(() => define("1 minute")).toThrow(/`period` must be .*; got "1 minute"/);
  expect(() => define("0.5ms")).toThrow(/`period` must be .*; got 0.5/);
});
