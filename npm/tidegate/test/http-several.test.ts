/** Fields and problems of several decisions, and of windows that hold more than their rate. */
import { expect, test } from "vitest";
import { appendRateLimitHeaders, problem, rateLimitHeaders, statusOf } from "../src/http/index.ts";
import { type Decision, defineLimits, evaluate, MINUTE, SECOND } from "../src/index.ts";

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

test("of two grants that leave the same, the single-valued fields are those of the longer time, in either order", () => {
  const limits = defineLimits(
    {
      nine: { kind: "token bucket", rate: 1, period: 9 * SECOND },
      minute: { kind: "token bucket", rate: 1, period: MINUTE },
    },
    { now: () => NOW },
  );
  const [nine, minute] = [limits.limit("nine"), limits.limit("minute")];
  const fields = ["draft-6", "x-ratelimit"] as const;
  for (const order of [
    [nine, minute],
    [minute, nine],
  ]) {
    expect(rateLimitHeaders(order, { fields })).toMatchObject({
      "RateLimit-Remaining": "0",
      "RateLimit-Reset": "60",
      "X-RateLimit-Reset": String(NOW / 1000 + 60),
    });
    for (const family of [fields, "draft-7"] as const) {
      const headers = new Headers();
      for (const decision of order) appendRateLimitHeaders(headers, decision, { fields: family });
      const reset = headers.get("RateLimit-Reset") ?? headers.get("RateLimit");
      expect(reset).toBe(family === "draft-7" ? "limit=1, remaining=0, reset=60" : "60");
    }
  }
});

test("an empty window's t is the rest of those until its next token, where one window brings none", () => {
  const owing = { kind: "fixed window", rate: 3, period: 10 * SECOND, start: 0 } as const;
  const slow = { kind: "fixed window", rate: 0.1, period: 10 * SECOND, capacity: 1, start: 0 } as const;
  let now = NOW + 4000;
  const limits = defineLimits({ owing, slow }, { now: () => now });
  const t = (decision: Decision): string | undefined =>
    /r=0;t=(\d+)$/.exec(rateLimitHeaders(decision)["RateLimit"] ?? "")?.[1];
  for (const [count, expected] of [
    [3, "6"],
    [2, "6"], // 2 are owed, and the next window brings 3
    [1, "16"],
  ] as const)
    expect(t(limits.limit("owing", { count, reserve: true }))).toBe(expected);
  now += 15_999;
  expect(limits.check("owing").ok).toBe(false);
  now += 1;
  expect(limits.check("owing").ok).toBe(true);
  // By the quotient alone four windows: (1 - 0.7) / 0.1 is 3.0000000000000004.
  expect(t(evaluate({ value: 0.7, ts: NOW }, slow, { now: NOW, count: 0 }).decision)).toBe("30");
  expect(evaluate({ value: 0.7, ts: NOW }, slow, { now: NOW + 30_000 }).decision.ok).toBe(true);
});

test("a grant has the older families' fields too, status 200 and no problem", () => {
  const granted = start().limit("a");
  expect(rateLimitHeaders(granted, { fields: ["draft-7", "draft-6", "x-ratelimit"] })).toEqual({
    "RateLimit-Policy": "20;w=120",
    RateLimit: "limit=20, remaining=19, reset=114",
    "RateLimit-Limit": "20",
    "RateLimit-Remaining": "19",
    "RateLimit-Reset": "114",
    "X-RateLimit-Limit": "20",
    "X-RateLimit-Remaining": "19",
    "X-RateLimit-Reset": String(NOW / 1000 + 114),
  });
  expect(rateLimitHeaders(start().limit("a", { count: 21 }), { fields: "draft-7" })["RateLimit"]).toBe("limit=20");
  expect([statusOf(granted), problem(granted)]).toEqual([200, undefined]);
});

test("of several limits the older families have all policies, and the numbers of the tightest", () => {
  const { decisions } = start().limitAll([{ name: "a" }, { name: "b" }]);
  for (const order of [decisions, [...decisions].reverse()]) {
    const fields = rateLimitHeaders(order, { fields: ["draft-6", "x-ratelimit"] });
    expect(fields["RateLimit-Policy"]?.split(", ").sort()).toEqual(["20;w=120", "5;w=30"]);
    expect([fields["RateLimit-Limit"], fields["X-RateLimit-Remaining"]]).toEqual(["5", "4"]);
  }
});

test("a grant has its unit without a partition, and its partition without a unit", () => {
  const granted = start().limit("a");
  const policy = (options: Parameters<typeof rateLimitHeaders>[1]) =>
    rateLimitHeaders(granted, options)["RateLimit-Policy"];
  expect(policy({ unit: "content-bytes" })).toBe('"a";q=20;qu="content-bytes";w=120');
  expect(policy({ unit: "requests" })).toBe('"a";q=20;w=120');
  expect(policy({ partitionKey: Uint8Array.of(0) })).toBe('"a";q=20;w=120;pk=:AA==:');
});

test("of two keys of one limit the one with fewer tokens is reported, and of two denied ones that with the longer wait", () => {
  const limits = start();
  limits.limit("a", { key: "x", count: 15 });
  limits.limit("a", { key: "y", count: 20 });
  const granted = [limits.check("a", { key: "x" }), limits.check("a", { key: "z" })];
  const denied = [limits.check("a", { key: "x", count: 15 }), limits.check("a", { key: "y" })];
  for (const [decisions, limit] of [
    [granted, '"a";r=4;t=24'],
    [denied, '"a";r=5;t=30'],
  ] as const)
    for (const order of [decisions, [...decisions].reverse()]) expect(rateLimitHeaders(order)["RateLimit"]).toBe(limit);
});

test("of several denials the wait is the longest, and there is none where one of them is never granted", () => {
  const limits = start();
  limits.limit("a", { count: 20 });
  limits.limit("b", { count: 5 });
  const [longer, shorter, never] = [
    limits.limit("a", { count: 10 }),
    limits.limit("b"),
    limits.limit("b", { count: 6 }),
  ];
  for (const order of [
    [longer, shorter],
    [shorter, longer],
  ]) {
    expect(rateLimitHeaders(order)["Retry-After"]).toBe("60");
    const detail = `${order.map(({ policy }) => `"${policy.name}"`).join(", ")} have too few tokens left. Retry in 60 s.`;
    expect(problem(order)).toMatchObject({ status: 429, detail, retryAt: NOW + 60_000 });
  }
  expect(rateLimitHeaders([longer, never])).not.toHaveProperty("Retry-After");
  const degraded = { ...shorter, degraded: true, retryAt: undefined } as const;
  expect(problem([longer, degraded])).toMatchObject({ status: 503, "violated-policies": ["a", "b"] });
});

test("a limit in shadow mode has no field of any family, and changes none", () => {
  const shadow = { ...start().limit("a"), shadow: { ok: false } } as never;
  for (const fields of ["draft-11", "draft-7", "draft-6", "x-ratelimit"] as const) {
    expect(rateLimitHeaders(shadow, { fields })).toEqual({});
    const headers = new Headers();
    appendRateLimitHeaders(headers, shadow, { fields });
    expect([...headers]).toEqual([]);
  }
});

test("an item is added to an earlier list by its name, of which the one with fewer tokens remains, of equal ones that of the longer time", () => {
  const limits = defineLimits({ api: bucket }, { now: () => NOW });
  const granted = limits.limit("api");
  const added = (earlier: string): string | null => {
    const headers = new Headers({ RateLimit: earlier });
    appendRateLimitHeaders(headers, granted);
    return headers.get("RateLimit");
  };
  expect(added('"b";r=1;t=6, "api";r=9;t=54')).toBe('"b";r=1;t=6, "api";r=9;t=54');
  expect(added('"b";r=1;t=6, "api";r=20;t=54')).toBe('"b";r=1;t=6, "api";r=19;t=114');
  expect(added('"api";r=19;t=115')).toBe('"api";r=19;t=115');
  expect(added('"api";r=19;t=113')).toBe('"api";r=19;t=114');
  expect(added('"api";r=20')).toBe('"api";r=19;t=114');
  expect(added('"api";r=19')).toBe('"api";r=19;t=114');
  // As express-rate-limit writes them.
  expect(added('"api"; r=20; t=54')).toBe('"api";r=19;t=114');
  expect(added('"api"; r=19; t=115')).toBe('"api"; r=19; t=115');
  expect(added('"api"; r=9; t=54')).toBe('"api"; r=9; t=54');
  // One without `r`, which the draft requires, is of no use to a client.
  expect(added('"api";t=54')).toBe('"api";r=19;t=114');
  expect(added("")).toBe('"api";r=19;t=114');
});

test("beside a longer Retry-After of another server the single-valued fields are still written", () => {
  const headers = new Headers({ "Retry-After": "10" });
  appendRateLimitHeaders(headers, start().limit("a"), { fields: "draft-6" });
  expect([headers.get("RateLimit-Remaining"), headers.get("Retry-After")]).toEqual(["19", "10"]);
});
