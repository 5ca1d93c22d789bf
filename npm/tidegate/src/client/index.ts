/**
 * The caller's side: functions and a `fetch` that wait for their own tokens, and slow down before a server denies them.
 *
 * @module
 */
export type { Clock } from "./clock.ts";
export type { StreamLimitOptions } from "./bytes.ts";
export { isQueueError, QueueError } from "./errors.ts";
export { createFetch, type LimitedFetch } from "./fetch/create.ts";
export type { FetchOptions, Retry } from "./fetch/options.ts";
export type { ThrottleOptions, TurnOptions } from "./options.ts";
export { type Semaphore, semaphore } from "./semaphore.ts";
export type { LimiterLike, LimitOf, Policy } from "./source.ts";
export { type SingleFlightOptions, singleFlight } from "./single-flight.ts";
export { limitStream } from "./stream.ts";
export { type FieldSource, readRateLimit, type Told, type ToldLimit } from "./told/read.ts";
export { concurrent, type Throttled, throttle } from "./throttle.ts";
