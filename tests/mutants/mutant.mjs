/** A mutant of a file of npm/tidegate/src: a text that it has once, its replacement, and tests of npm/tidegate/test. */
export const one = (file, find, replace, ...tests) => ({
  file: `npm/tidegate/src/${file}`,
  find,
  replace,
  tests: tests.flat().map((test) => `npm/tidegate/test/${test}`),
});
