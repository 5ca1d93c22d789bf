/**
 * For tests: a clock that stands still until it is told to move, and the contract of a store as code, for people who
 * write one.
 *
 * @module
 */
export { type FakeClock, fakeClock } from "./clock.ts";
export { type Deviations, type StoreSuiteOptions, storeSuite } from "./suite.ts";
export type { Stored, Vector, VectorFile, VectorRequest, VectorStep } from "./vectors.ts";
