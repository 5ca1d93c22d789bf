import fc from "fast-check";
import { expect, test } from "vitest";
import { leaders, Summary } from "../src/top.ts";

const KEYS = 40;
const keys = fc.array(fc.array(fc.nat({ max: KEYS - 1 }), { maxLength: 400 }), { minLength: 1, maxLength: 4 });

test("true counts are within the bounds, which are within 2 n / room, and memory is bounded", () => {
  fc.assert(
    fc.property(keys, fc.integer({ min: 1, max: 30 }), (streams, room) => {
      const truth = new Array<number>(KEYS).fill(0);
      const summaries = streams.map((stream) => {
        const summary = new Summary(room);
        for (const key of stream) {
          summary.add(String(key));
          truth[key] = (truth[key] as number) + 1;
          expect(summary.counts.size).toBeLessThanOrEqual(room);
        }
        expect(summary.reduction).toBeLessThanOrEqual((2 * stream.length) / room);
        return summary;
      });
      const listed = leaders(summaries, KEYS);
      for (const { key, atLeast, atMost } of listed) {
        expect(truth[Number(key)]).toBeGreaterThanOrEqual(atLeast);
        expect(truth[Number(key)]).toBeLessThanOrEqual(atMost);
      }
      const reduction = summaries.reduce((sum, summary) => sum + summary.reduction, 0);
      for (const [key, count] of truth.entries()) {
        if (listed.some((leader) => leader.key === String(key))) continue;
        expect(count).toBeLessThanOrEqual(reduction);
      }
    }),
    { numRuns: 500 },
  );
});

test("counts are exact while there is room, the most frequent first, then by name", () => {
  const summary = new Summary(4);
  for (const key of ["b", "a", "c", "d", "c", "b", "c", "a"]) summary.add(key);
  expect(leaders([summary], 3)).toEqual([
    { key: "c", atLeast: 3, atMost: 3 },
    { key: "a", atLeast: 2, atMost: 2 },
    { key: "b", atLeast: 2, atMost: 2 },
  ]);
});

test("a frequent key remains among many rare ones", () => {
  const summary = new Summary(10);
  for (let i = 0; i < 5; i++) summary.add(`once ${i}`);
  for (let i = 0; i < 100; i++) summary.add("often");
  for (let i = 5; i < 10; i++) summary.add(`once ${i}`);
  expect(leaders([summary], 10)).toEqual([{ key: "often", atLeast: 99, atMost: 100 }]);
});
