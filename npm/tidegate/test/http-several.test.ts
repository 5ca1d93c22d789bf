/** Fields and problems of several decisions, and of windows that hold more than their rate. */
import { expect, test } from "vitest";
import { appendRateLimitHeaders, problem, rateLimitHeaders } from "../src/http/index.ts";
import { defineLimits, MINUTE, SECOND } from "../src/index.ts";

const NOW = 1_700_000_000_000;
const bucket = { kind: "token bucket", rate: 10, period: MINUTE, capacity: 20 } as const;
const start = () => defineLimits({ a: bucket, b: { ...bucket, capacity: 5 } }, { now: () => NOW });

test("the window of a fixed window is as many as fill its capacity", () => {
  const limits = defineLimits({ w: { kind: "fixed window", rate: 5, period: SECOND, capacity: 12, start: 0 } });
  expect(rateLimitHeaders(limits.limit("w"))["RateLimit-Policy"]).toBe('"w";q=12;w=3');
});

test("of two keys of one limit the denied one is reported, however many tokens it has", () => {
  const limits = start();
  limits.limit("a", { key: "x", count: 15 });
  limits.limit("a", { key: "y", count: 18 });
  const decisions = [limits.limit("a", { key: "y" }), limits.limit("a", { key: "x", count: 10 })];
  expect(decisions.map(({ ok, remaining }) => [ok, remaining])).toEqual([
    [true, 1],
    [false, 5],
  ]);
  for (const order of [decisions, [...decisions].reverse()])
    expect(rateLimitHeaders(order, { fields: "draft-6" })["RateLimit-Remaining"]).toBe("5");
});

test("the text of a problem has the wait of Retry-After, jitter included", () => {
  const limits = start();
  limits.limit("a", { count: 20 });
  const denied = limits.limit("a", { count: 20 });
  const spread = { jitter: { key: "someone", fraction: 1 } };
  const spreadWait = Number(rateLimitHeaders(denied, spread)["Retry-After"]);
  expect(spreadWait).toBeGreaterThan(120);
  expect(problem(denied, spread)?.detail).toBe(`"a" has too few tokens left. Retry in ${spreadWait} s.`);
});

test("a problem that no wait solves names the limits that never grant it, and no other", () => {
  const limits = start();
  limits.limit("a", { count: 20 });
  const { decisions } = limits.limitAll([
    { name: "a", count: 6 },
    { name: "b", count: 6 },
  ]);
  expect(decisions.map(({ ok }) => ok)).toEqual([false, false]);
  expect(problem(decisions)).toMatchObject({ status: 400, "violated-policies": ["b"] });
});

test("of two denials the single-valued fields are those of the longer wait", () => {
  const limits = start();
  limits.limit("a", { count: 15 });
  limits.limit("b", { count: 5 });
  const [longer, shorter] = [limits.limit("a", { count: 15 }), limits.limit("b", { count: 1 })];
  expect([longer, shorter].map(({ remaining, retryAfter }) => [remaining, retryAfter])).toEqual([
    [5, 60_000],
    [0, 6000],
  ]);
  for (const order of [
    [longer, shorter],
    [shorter, longer],
  ]) {
    const headers = new Headers();
    for (const decision of order) appendRateLimitHeaders(headers, decision, { fields: "draft-6" });
    expect([headers.get("RateLimit-Remaining"), headers.get("Retry-After")]).toEqual(["5", "60"]);
  }
});
