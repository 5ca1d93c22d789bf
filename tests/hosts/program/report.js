// Runs the store suite in the current runtime, and returns the result of each test.
import { storeSuite } from "tidegate/testing";

/** @returns {Promise<{ name: string, error?: string }[]>} */
export async function report(options) {
  const tests = [];
  const headings = [];
  storeSuite({
    ...options,
    describe(name, body) {
      headings.push(name);
      body();
      headings.pop();
    },
    test(name, body) {
      tests.push({ name: [...headings, name].join(" > "), body });
    },
  });
  const results = [];
  for (const { name, body } of tests) {
    try {
      await body();
      results.push({ name });
    } catch (error) {
      results.push({ name, error: `${error?.message ?? error}` });
    }
  }
  return results;
}
