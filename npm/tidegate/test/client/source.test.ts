/** A private limit decides as a limiter in memory does, and keeps its states without a table. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { sourcesOf } from "../../src/client/source.ts";
import { type Config, defineLimits } from "../../src/index.ts";

const KEYS = ["a", "b", "c"];

test("decides as a limiter in memory does, for any history of keys", () => {
  const call = fc.record({
    key: fc.constantFrom(...KEYS),
    op: fc.constantFrom("take", "give", "value"),
    count: fc.double({ min: 0, max: 6, noNaN: true }),
    wait: fc.nat(1500),
  });
  const config: fc.Arbitrary<Config> = fc.oneof(
    fc.record({ kind: fc.constant("token bucket"), rate: fc.integer({ min: 1, max: 9 }), period: fc.constant(1000) }),
    fc.record({
      kind: fc.constant("fixed window"),
      rate: fc.integer({ min: 1, max: 9 }),
      period: fc.constant(1000),
      start: fc.constantFrom(0, 250, "first request" as const),
    }),
  );
  fc.assert(
    fc.property(config, fc.array(call, { maxLength: 60 }), (config, calls) => {
      let now = 1e12;
      const source = sourcesOf(config, () => now);
      const limits = defineLimits({ throttle: config }, { now: () => now });
      for (const { key, op, count, wait } of calls) {
        now += wait;
        const options = { key, count };
        const [got, expected] =
          op === "value"
            ? [source(key).value(), limits.getValue("throttle", { key })]
            : op === "take"
              ? [source(key).take(count), limits.limit("throttle", { ...options, reserve: true })]
              : [source(key).give(count), limits.give("throttle", options)];
        expect(got).toEqual(expected);
      }
    }),
    { numRuns: 200 },
  );
});

test("the windows of different keys begin at different times, and those of one key at the same", () => {
  const source = sourcesOf({ kind: "fixed window", rate: 1, period: 60_000 }, () => 1e12);
  const starts = ["a", "b", undefined, "a"].map((key) => {
    const { config } = source(key).value() as { config: Config };
    return (config as { start: number }).start;
  });
  expect(new Set(starts).size).toBe(3);
  expect(starts[3]).toBe(starts[0]);
  for (const start of starts) expect(start).toSatisfy((at: number) => Number.isInteger(at) && at >= 0 && at < 60_000);
});

test("refuses a key that is too long", () => {
  const source = sourcesOf({ kind: "token bucket", rate: 1, period: 1000 }, () => 1e12);
  expect(() => source("é".repeat(513))).toThrow("`key` must be a string of at most 1024 bytes in UTF-8");
  expect(() => source("é".repeat(512)).take(1)).not.toThrow();
});
