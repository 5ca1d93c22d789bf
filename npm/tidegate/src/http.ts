/**
 * What a server tells over HTTP, and whom it limits: fields, status and body from a decision, keys from a request.
 *
 * @module
 */
export { type AddressOptions, addressKey } from "./http/address.ts";
export { type ClientIpOptions, type ClientRequest, clientIp } from "./http/client-ip.ts";
export {
  appendRateLimitHeaders,
  type HeaderFamily,
  type HeaderTarget,
  type RateLimitHeaderOptions,
  rateLimitHeaders,
} from "./http/fields.ts";
export { boundedKey, tupleKey } from "./http/key.ts";
export { PROBLEM_JSON, type Problem, problem, statusOf } from "./http/problem.ts";
export type { RetryOptions } from "./http/quota.ts";
