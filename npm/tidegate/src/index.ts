/**
 * Rate limiting on two numbers, the same on every JavaScript host.
 *
 * @module
 */
export type {
  CommonConfig,
  Config,
  FixedWindowConfig,
  OnStoreError,
  Policy,
  TokenBucketConfig,
} from "./limit/config.ts";
export type { AllDecision, Decision, Reason, State } from "./limit/decision.ts";
export { DAY, type Duration, HOUR, MINUTE, SECOND, WEEK } from "./limit/duration.ts";
export {
  InputError,
  isInputError,
  isRateLimitError,
  isStoreError,
  RateLimitError,
  StoreError,
  type StoreErrorDetails,
} from "./limit/errors.ts";
export { type EvaluateOptions, evaluate, project } from "./limit/evaluate.ts";
export { type JitterOptions, jitter } from "./limit/jitter.ts";
export type { LeaseOptions } from "./limiter/lease/options.ts";
export type { Evaluation } from "./limit/evaluator.ts";
export type { Limit } from "./limit/limit.ts";
export { defineLimits, type Limiter } from "./limiter/limiter.ts";
export type {
  Answer,
  BlockOptions,
  CallOptions,
  InlineRequest,
  KeyOptions,
  LimiterOptions,
  LimitOptions,
  LimitRequest,
  Value,
} from "./limiter/options.ts";
export type { Log } from "./limiter/outages.ts";
export type { Resilience } from "./limiter/resilience.ts";
export { type MemoryOptions, type MemoryStats, type MemoryStore, memory } from "./stores/memory.ts";
export type { AsyncStore, Call, Op, Store, SyncStore } from "./stores/contract.ts";
