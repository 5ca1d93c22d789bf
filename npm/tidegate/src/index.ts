/**
 * Rate limiting on two numbers, the same on every JavaScript host.
 *
 * @module
 */
export type { CommonConfig, Config, FixedWindowConfig, Policy, TokenBucketConfig } from "./config.ts";
export type { AllDecision, Decision, Reason, State } from "./decision.ts";
export { DAY, HOUR, MINUTE, SECOND, WEEK } from "./duration.ts";
export {
  InputError,
  isInputError,
  isRateLimitError,
  isStoreError,
  RateLimitError,
  StoreError,
  type StoreErrorDetails,
} from "./errors.ts";
export { type EvaluateOptions, evaluate, project } from "./evaluate.ts";
export { type JitterOptions, jitter } from "./jitter.ts";
export type { LeaseOptions } from "./lease/options.ts";
export type { Evaluation, Limit } from "./limit.ts";
export {
  type Answer,
  type CallOptions,
  defineLimits,
  type Limiter,
  type LimiterOptions,
  type LimitOptions,
  type LimitRequest,
  type Value,
} from "./limiter.ts";
export type { Log } from "./outages.ts";
export type { Resilience } from "./resilience.ts";
export { type MemoryOptions, type MemoryStats, MemoryStore, memory } from "./stores/memory.ts";
export type { AsyncStore, Call, OnStoreError, Op, Store, SyncStore } from "./store.ts";
