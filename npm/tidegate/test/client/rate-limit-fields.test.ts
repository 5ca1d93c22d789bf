import { describe, expect, test, vi } from "vitest";
import { readRateLimit } from "../../src/client/index.ts";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type HeaderFamily, rateLimitHeaders } from "../../src/http/index.ts";
import { DIALECTS, NOW } from "./dialects.ts";

// A busy machine is slow; nothing here waits for real time.
vi.setConfig({ testTimeout: 60_000 });

describe("what real APIs answer", () => {
  test.each(DIALECTS)("$api", ({ fields, reported }) =>
    expect(readRateLimit(new Headers(fields), NOW)).toEqual(reported),
  );
});

describe("our own fields", () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 30, period: MINUTE } }, { now: () => NOW });
  const granted = limits.limit("api", { count: 10 });
  const denied = limits.limit("api", { count: 25 });
  test.each<HeaderFamily>(["draft-11", "draft-7", "draft-6", "x-ratelimit"])("%s", (family) => {
    const headers = new Headers(rateLimitHeaders(granted, { fields: family }));
    const [reported] = readRateLimit(headers, NOW).limits;
    expect(reported).toMatchObject({ unit: "requests", limit: 30, remaining: 20, resetAfter: 40_000 });
    const refused = readRateLimit(new Headers(rateLimitHeaders(denied, { fields: family })), NOW);
    expect(refused.retryAfter).toBe(10_000);
    expect(refused.limits).toHaveLength(1);
  });
});

describe("what is not to be believed", () => {
  const nothing = { limits: [], retryAfter: undefined };
  test.each([
    {},
    { RateLimit: '"a";r=1;t=2,' },
    { RateLimit: '"a";r=-1;t=2' },
    { RateLimit: '"a";t=2' },
    { RateLimit: "(1 2);r=1" },
    { "X-RateLimit-Remaining": "many" },
    { "X-RateLimit-Remaining": "-1" },
    { "X-RateLimit-Remaining": "NaN" },
    { "Retry-After": "soon" },
    { "Retry-After": "-1" },
    { "Retry-After": "1e9" },
    { "Retry-After": "0x10" },
    { "Retry-After": "" },
    { "Retry-After": "2 hours" },
  ])("%j", (fields) => expect(readRateLimit(new Headers(fields as HeadersInit), NOW)).toEqual(nothing));

  test("an answer out of a cache tells nothing but its Retry-After", () => {
    const headers = new Headers({ Age: "30", RateLimit: '"a";r=0;t=60', "Retry-After": "5" });
    expect(readRateLimit(headers, NOW)).toEqual({ limits: [], retryAfter: 5000 });
  });

  test("a reset that has passed is no wait, and none is negative", () => {
    const at = (reset: string) =>
      readRateLimit(new Headers({ "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset }), NOW).limits[0]
        ?.resetAfter;
    expect(at(String(NOW / 1000 - 60))).toBe(0);
    expect(at(new Date(NOW - 60_000).toISOString())).toBe(0);
    expect(at(String(NOW + 60_000))).toBe(60_000);
    expect(at("yesterday")).toBeUndefined();
  });
});
