/**
 * Limits over HTTP: fields, status and body of a response from a decision, and keys from a request.
 *
 * @module
 */
export { type AddressOptions, addressKey } from "./address.ts";
export { type ClientIpOptions, type ClientRequest, clientIp } from "./client-ip.ts";
export {
  appendRateLimitHeaders,
  type HeaderFamily,
  type HeaderTarget,
  type RateLimitHeaderOptions,
  rateLimitHeaders,
} from "./fields.ts";
export { boundedKey, tupleKey } from "./key.ts";
export { PROBLEM_JSON, type Problem, problem, statusOf } from "./problem.ts";
export type { Decided, RetryOptions } from "./quota.ts";
