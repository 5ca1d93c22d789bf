/** What `npm test` counts, and its last line: no failure and no skipped test is lost between a runner's report and there. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { add, cargo, nextest, sentence, settle, vitest } from "../../npm/scripts/counts.mjs";
import { remove, temporaryFolder } from "../support/folders.ts";

test("an ignored test of nextest is counted as skipped", () => {
  const summary = "     Summary [   2.345s] 12 tests run: 11 passed, 1 failed, 3 skipped";
  expect(nextest(summary)).toEqual({ passed: 11, failed: 1, skipped: 3 });
});

test("a test of nextest that was ended for its time is counted as failed", () => {
  const summary = "     Summary [  60.345s] 4 tests run: 1 passed (1 slow), 1 failed, 2 timed out, 0 skipped";
  expect(nextest(summary)).toEqual({ passed: 1, failed: 3, skipped: 0 });
});

test("the counts of cargo are those of all its programs", () => {
  const output = [
    "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
    "test result: \u001b[31mFAILED\u001b[0m. 3 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
  ].join("\n");
  expect(cargo(output)).toEqual({ passed: 5, failed: 4, skipped: 1 });
});

test("a file that vitest could not load is one failure more than its failed tests", () => {
  const folder = temporaryFolder("counts");
  onTestFinished(() => remove(folder));
  const report = {
    numPassedTests: 5,
    numFailedTests: 1,
    numPendingTests: 2,
    numTodoTests: 1,
    testResults: [
      { status: "failed", assertionResults: [{ status: "failed" }] },
      { status: "failed", assertionResults: [] },
      { status: "passed", assertionResults: [] },
    ],
  };
  writeFileSync(join(folder, "report.json"), JSON.stringify(report));
  expect(vitest(join(folder, "report.json"))).toEqual({ passed: 5, failed: 2, skipped: 3 });
});

test("a step that fails or reports nothing has at least one failure", () => {
  const none = { passed: 0, failed: 0, skipped: 0 };
  const some = { passed: 3, failed: 0, skipped: 0 };
  expect(settle(none, 0)).toEqual({ ...none, failed: 1 });
  expect(settle(some, 1)).toEqual({ ...some, failed: 1 });
  expect(settle(some, 0)).toEqual(some);
  expect(settle({ ...some, failed: 2 }, 1)).toEqual({ ...some, failed: 2 });
});

test("a skipped test of any step is in the last line", () => {
  const steps = [
    { passed: 3, failed: 0, skipped: 1 },
    { passed: 2, failed: 0, skipped: 0 },
  ];
  expect(sentence(add(steps))).toBe("5 passed, 0 failed, 1 skipped");
  expect(sentence(add(steps.slice(1)))).toBe("2 passed, 0 failed");
});
