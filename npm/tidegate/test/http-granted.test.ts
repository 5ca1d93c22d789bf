import fc from "fast-check";
import { expect, test } from "vitest";
import { appendRateLimitHeaders, rateLimitHeaders } from "../src/http/index.ts";
import { type Config, type Decision, defineLimits, evaluate, HOUR, MINUTE } from "../src/index.ts";
import { there } from "./realm.ts";

const written = (decided: Decision): Record<string, string> => {
  const fields = new Map<string, string>();
  appendRateLimitHeaders(
    { getHeader: (name) => fields.get(name), setHeader: (name, value) => fields.set(name, value) },
    decided,
  );
  return Object.fromEntries(fields);
};

test("the fields of the fast path equal those of the general one, for any limit, count and time", () => {
  const config = fc.record({
    kind: fc.constantFrom("token bucket" as const, "fixed window" as const),
    rate: fc.oneof(fc.integer({ min: 1, max: 2 ** 40 }), fc.double({ min: 1e-9, max: 1e6, noNaN: true })),
    period: fc.integer({ min: 1, max: 2 ** 40 }),
    capacity: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 2 ** 40, noNaN: true })),
  });
  const step = fc.record({
    after: fc.integer({ min: -1000, max: 1e6 }),
    part: fc.double({ min: 0, max: 1.2, noNaN: true }),
    reserve: fc.boolean(),
  });
  fc.assert(
    fc.property(config, fc.array(step, { minLength: 1, maxLength: 8 }), (config, steps) => {
      let now = 1_735_689_600_000;
      const limits = defineLimits({ api: config as Config }, { now: () => now });
      for (const { after, part, reserve } of steps) {
        now += after;
        const decision = limits.limit("api", { count: Math.min(config.capacity * part, 2 ** 40), reserve });
        // A list is not written by the short way.
        const fields = rateLimitHeaders([decision]);
        expect(rateLimitHeaders(decision)).toEqual(fields);
        expect(written(decision)).toEqual(fields);
      }
    }),
    { numRuns: 500 },
  );
});

test("a text that does not end, as of a server behind a gateway, stays as it is: its rest is read once, not from each quote", () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } });
  for (const open of ['"open, x', 'a"b', '"\\', `a${'"\\'.repeat(1000)}`]) {
    const headers = new Headers({ RateLimit: open });
    appendRateLimitHeaders(headers, limits.check("api"));
    expect(headers.get("RateLimit")).toBe(`${open}, "api";r=0;t=1`);
  }
});

test("a grant without the store has no number of tokens", () => {
  const limits = defineLimits({ a: { kind: "token bucket", rate: 5, period: 60_000 } });
  const degraded: Decision = { ...limits.limit("a"), degraded: true, value: 0, remaining: 0 };
  expect(written(degraded)).toEqual({ "RateLimit-Policy": '"a";q=5;w=60' });
});

test("a partition key is bytes of any realm, and nothing else", () => {
  const decided = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } }).limit("api");
  const policyOf = (partitionKey: Uint8Array) => rateLimitHeaders(decided, { partitionKey })["RateLimit-Policy"];
  expect(policyOf(there("Uint8Array.of(0, 255, 16)"))).toBe(policyOf(Uint8Array.of(0, 255, 16)));
  expect(() => policyOf([0, 255, 16] as never)).toThrow("`partitionKey` must be a Uint8Array");
});

test("after t of an empty bucket its next token is granted", () => {
  const t = (decision: Decision): number =>
    Number(/;t=(\d+)$/.exec(rateLimitHeaders(decision)["RateLimit"] ?? "")?.[1]);
  const now = 1_700_000_000_000;
  const fifths = { kind: "token bucket", rate: 5, period: HOUR, capacity: 3 } as const;
  // By the formula alone 572 s, at which rounding leaves 0.9999999999999998 tokens.
  expect(t(evaluate({ value: 1.2055555555555555, ts: now }, fifths, { now }).decision)).toBe(573);

  const rate = fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.double({ min: 0.01, max: 10, noNaN: true }));
  const period = fc.constantFrom(1500, MINUTE, HOUR, 24 * HOUR);
  const passed = fc.integer({ min: 0, max: 2000 }).map((s) => s * 1000);
  fc.assert(
    fc.property(rate, period, passed, (rate, period, passed) => {
      const policy = { kind: "token bucket", rate, period, capacity: 1 } as const;
      const emptied = evaluate(null, policy, { now }).state;
      const { decision, state } = evaluate(emptied, policy, { now: now + passed });
      if (decision.remaining > 0) return;
      expect(evaluate(state, policy, { now: now + passed + t(decision) * 1000 }).decision.ok).toBe(true);
    }),
    { numRuns: 2000 },
  );
});
