/** The last line of `npm test` reports a skipped test. */
import { expect, test } from "vitest";
import { add, nextest, sentence } from "../../npm/scripts/counts.mjs";

test("an ignored test of nextest is counted as skipped", () => {
  const summary = "     Summary [   2.345s] 12 tests run: 11 passed, 1 failed, 3 skipped";
  expect(nextest(summary)).toEqual({ passed: 11, failed: 1, skipped: 3 });
});

test("a skipped test of any step is in the last line", () => {
  const steps = [
    { passed: 3, failed: 0, skipped: 1 },
    { passed: 2, failed: 0, skipped: 0 },
  ];
  expect(sentence(add(steps))).toBe("5 passed, 0 failed, 1 skipped");
  expect(sentence(add(steps.slice(1)))).toBe("2 passed, 0 failed");
});
