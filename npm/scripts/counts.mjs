// Reads from a runner's report how many tests passed, failed and were skipped.
import { readFileSync } from "node:fs";

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

const none = () => ({ passed: 0, failed: 0, skipped: 0 });

// Colours, where a runner writes them despite NO_COLOR.
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence starts with one
const plain = (text) => text.replaceAll(/\u001b\[[0-9;]*m/g, "");

/** `cargo test` writes one "test result" line for each program. */
export function cargo(output) {
  const lines = plain(output).matchAll(/^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/gm);
  return add(
    Array.from(lines, ([, passed, failed, skipped]) => ({ passed: +passed, failed: +failed, skipped: +skipped })),
  );
}

/** nextest writes one summary. A test is skipped that is marked `#[ignore]`. */
export function nextest(output) {
  const summary = plain(output).match(/^\s*Summary \[.*\] .*? tests? run: (.*)$/m)?.[1] ?? "";
  const count = (word) => +(summary.match(new RegExp(`(\\d+) ${word}`))?.[1] ?? 0);
  return { passed: count("passed"), failed: count("failed") + count("timed out"), skipped: count("skipped") };
}

/** vitest's JSON report. A file that could not be loaded has no tests, and counts as one failure. */
export function vitest(file) {
  const report = JSON.parse(readFileSync(file, "utf8"));
  const broken = report.testResults.filter((one) => one.status === "failed" && one.assertionResults.length === 0);
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/** A check with one result. */
export const single = (status) => ({ ...none(), [status === 0 ? "passed" : "failed"]: 1 });

/** A step that failed or reported nothing counts as at least one failure. */
export function settle(counts, status) {
  const silent = counts.passed + counts.failed + counts.skipped === 0;
  if (counts.failed === 0 && (status !== 0 || silent)) return { ...counts, failed: 1 };
  return counts;
}

export function add(all) {
  return all.reduce((sum, { passed, failed, skipped }) => {
    return { passed: sum.passed + passed, failed: sum.failed + failed, skipped: sum.skipped + skipped };
  }, none());
}

/** The last line of every run. */
export function sentence({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
