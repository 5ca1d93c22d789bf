/** A mutant of a file of npm/tidegate/src: a text that it has once, its replacement, and tests of npm/tidegate/test. */
export const one = (file, find, replace, ...tests) => ({
  file: `npm/tidegate/src/${file}`,
  find,
  replace,
  tests: tests.flat().map((test) => `npm/tidegate/test/${test}`),
});

/** A mutant of a file of npm/tidegate/src/stores, with whole paths of its tests: see `unit` and `server`. */
export const inStore =
  (file, ...tests) =>
  (find, replace) => ({ file: `npm/tidegate/src/stores/${file}`, find, replace, tests });
/** Tests of npm/tidegate/test. */
export const unit = (...names) => names.map((name) => `npm/tidegate/test/${name}.test.ts`);
/** Tests of tests/stores, which start that store's server. */
export const server = (...names) => names.map((name) => `tests/stores/${name}.test.ts`);
/** The same for a store with a folder of its own, among the sources and among the tests. */
export const inFolder =
  (store) =>
  (file, ...tests) =>
    inStore(`${store}/${file}`, ...server(...tests.map((test) => `${store}/${test}`)));
