/**
 * The caller's side: functions and a `fetch` that wait for their own tokens, and slow down before a server denies them.
 *
 * @module
 */
export type { Clock } from "./clock.ts";
export { createFetch, type LimitedFetch } from "./fetch.ts";
export type { FetchOptions, Retry } from "./fetch-options.ts";
export type { ThrottleOptions, TurnOptions } from "./options.ts";
export { isQueueError, QueueError } from "./queue.ts";
export { type FieldSource, readRateLimit, type ServerLimit, type ServerLimits } from "./rate-limit-fields.ts";
export { type Semaphore, semaphore } from "./semaphore.ts";
export { type SingleFlightOptions, singleFlight } from "./single-flight.ts";
export type { ConfigOrLimit, LimiterLike, LimitOf } from "./source.ts";
export { limitObjectStream, limitStream, type ObjectLimitOptions, type StreamLimitOptions } from "./streams.ts";
export { concurrent, type Throttled, throttle } from "./throttle.ts";
