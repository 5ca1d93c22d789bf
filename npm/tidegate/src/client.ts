/**
 * The caller's side: functions and a `fetch` that wait for their own tokens, and slow down before a server denies them.
 *
 * @module
 */
export type { Clock } from "./client/clock.ts";
export type { StreamLimitOptions } from "./client/bytes.ts";
export { isQueueError, QueueError } from "./client/errors.ts";
export { createFetch, type LimitedFetch } from "./client/fetch/create.ts";
export type { FetchOptions, Retry } from "./client/fetch/options.ts";
export type { ThrottleOptions, TurnOptions } from "./client/options.ts";
export { type Semaphore, semaphore } from "./client/semaphore.ts";
export type { LimiterLike, LimitOf, Policy } from "./client/source.ts";
export { type SingleFlightOptions, singleFlight } from "./client/single-flight.ts";
export { limitStream } from "./client/stream.ts";
export { type FieldSource, readRateLimit, type Told, type ToldLimit } from "./client/told/read.ts";
export { concurrent, type Throttled, throttle } from "./client/throttle.ts";
