/**
 * For tests: a clock that a test moves, and the contract of a store as a test suite, for authors of stores.
 *
 * @module
 */
export { type FakeClock, fakeClock } from "./clock.ts";
export { type Deviations, type StoreSuiteOptions, storeSuite } from "./suite.ts";
export type { Stored, Vector, VectorFile, VectorRequest, VectorStep } from "./vectors.ts";
