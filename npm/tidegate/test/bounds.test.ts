/** The most that a call takes: that is accepted, and one more is an error. */
import { describe, expect, test } from "vitest";
import { defineLimits, MINUTE } from "../src/index.ts";
import { spend } from "../src/limiter/budget.ts";
import { rateLimitMiddleware } from "../src/middleware/node.ts";

const bucket = { kind: "token bucket", rate: 1_000_000, period: MINUTE } as const;
const names = Array.from({ length: 101 }, (_, i) => `limit-${i}`);
const limits = defineLimits(Object.fromEntries(names.map((name) => [name, bucket])));
const first = (count: number): string[] => names.slice(0, count);
const name = "limit-0";

describe.each<[string, number, (count: number) => unknown]>([
  ["requests", 100, (count) => limits.limitAll(first(count).map((one) => ({ name: one })))],
  ["requests", 100, (count) => limits.checkAll(first(count).map((one) => ({ name: one })))],
  ["keys", 100_000, (count) => limits.limitMany(name, Array(count).fill("key"))],
  ["limits", 100, (count) => rateLimitMiddleware(limits, { limits: first(count).map((one) => ({ name: one })) })],
  ["limits", 100, (count) => spend(limits, { limits: first(count), estimate: 1 }, () => {})],
  ["for", 2 ** 40, (count) => limits.block(name, { for: count })],
  ["count", 2 ** 40, (count) => limits.check(name, { count })],
  ["now", 2 ** 52, (count) => defineLimits({ api: bucket }, { now: () => count }).check("api")],
])("%s: at most %d", (field, most, call) => {
  test("that is accepted, and one more is not", async () => {
    await (async () => call(most))();
    await expect(async () => call(most + 1)).rejects.toMatchObject({ code: "TIDEGATE_INPUT", field });
  });
});
