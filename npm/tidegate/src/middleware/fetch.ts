/**
 * A limit in front of a handler that takes a `Request` and returns a `Response`: Workers, Deno, Bun; SvelteKit and
 * React Router pass an object that has the request.
 *
 * @module
 */
export { type RateLimitBinding, rateLimitBinding } from "./drop-in/binding.ts";
export { decisionOf, type FetchDenied, type FetchOptions, limitHandler as rateLimit } from "./fetch-response.ts";
export type { Denial, RequestDecision } from "./options.ts";
