/** The status and the body of a denied request. */
import type { Decision } from "../limit/decision.ts";
import { type Check, checkTable, fieldTable, type Table } from "../limit/checks.ts";
import { checkJitter } from "../limit/jitter.ts";
import { type Decided, listOf, quotasOf, type RetryOptions } from "./quota.ts";

/** The media type of a {@link problem}. */
export const PROBLEM_JSON = "application/problem+json";

/** A problem of RFC 9457, as JSON goes over the wire. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The names of the limits that deny. */
  "violated-policies": string[];
  /** Epoch ms from which the same request is granted, jitter included; absent if no wait helps. */
  retryAt?: number;
}

const never = (decision: Decision): boolean => decision.reason !== undefined;

/** The decisions that deny; throws if an option is wrong. */
function denials(decided: Decided, options: RetryOptions & { never?: unknown }): readonly Decision[] {
  checkTable("a problem", options, OPTIONS);
  if (options.jitter !== undefined) checkJitter(options.jitter);
  return listOf(decided).filter((decision) => !decision.ok);
}

function denialStatus(denying: readonly Decision[], options: { never?: 400 | 413 | 422 | undefined }): number {
  if (denying.some(never)) return options.never ?? 400;
  return denying.some((decision) => decision.degraded === true && decision.retryAt === undefined) ? 503 : 429;
}

/**
 * The response's status: 200 if all is granted (also reserved), 429 if it is denied for now, 503 if it is denied
 * because the store failed, 400 if no wait helps, because the count exceeds what the limit ever grants. Clients retry a
 * 429, and some (ky) a 413; pass `never: 413` if the count is the size of the content. Throws an `InputError` if an
 * argument is wrong.
 *
 * ```ts
 * response.writeHead(statusOf(decision), rateLimitHeaders(decision));
 * ```
 */
export function statusOf(decided: Decided, options: { never?: 400 | 413 | 422 | undefined } = {}): number {
  const denying = denials(decided, options);
  return denying.length === 0 ? 200 : denialStatus(denying, options);
}

/**
 * The body of a denial: problem+json with the problem types of the draft of the RateLimit fields, `quota-exceeded` and
 * `temporary-reduced-capacity`. Pass it the same options as `rateLimitHeaders`.
 *
 * ```ts
 * new Response(JSON.stringify(problem(d)), { status: statusOf(d), headers: { "Content-Type": PROBLEM_JSON } });
 * ```
 *
 * Returns `undefined` if nothing was denied. Throws an `InputError` if an argument is wrong. Source: RFC 9457;
 * draft-ietf-httpapi-ratelimit-headers-11, section 5.
 */
export function problem(
  decided: Decided,
  options: RetryOptions & { never?: 400 | 413 | 422 | undefined } = {},
): Problem | undefined {
  const denying = denials(decided, options);
  if (denying.length === 0) return undefined;
  const status = denialStatus(denying, options);
  const violated = status === 429 || status === 503 ? denying : denying.filter(never);
  const names = [...new Set(violated.map(({ policy }) => policy.name))];
  const common = { status, "violated-policies": names };
  if (status === 503) {
    const detail = "The limits cannot be looked up at the moment.";
    return { type: `${TYPES}#temporary-reduced-capacity`, title: "Temporarily reduced capacity", detail, ...common };
  }
  if (status !== 429) {
    const detail = `It asks for more than ${list(names)} can ever grant at once.`;
    return { type: "about:blank", title: TITLES[status] as string, detail, ...common };
  }
  // Jitter included: the text names the wait of `Retry-After`.
  const { retryAt, retryAfterSeconds } = quotasOf(decided, options);
  const wait = retryAfterSeconds === undefined ? "" : ` Retry in ${retryAfterSeconds} s.`;
  const detail = `${list(names)} ${names.length === 1 ? "has" : "have"} too few tokens left.${wait}`;
  return {
    type: `${TYPES}#quota-exceeded`,
    title: "Quota exceeded",
    detail,
    ...common,
    ...(retryAt === undefined ? {} : { retryAt }),
  };
}

const TYPES = "https://iana.org/assignments/http-problem-types";
const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  413: "Content Too Large",
  422: "Unprocessable Content",
};
export const NEVER: Check = {
  expects: "400, 413 or 422",
  accepts: (never) => typeof never === "number" && TITLES[never] !== undefined,
};
/** Its own, and those of `rateLimitHeaders`. */
const OPTIONS: Table = { never: NEVER, ...fieldTable("fields", "unit", "partitionKey", "jitter") };

const list = (names: readonly string[]): string => names.map((name) => JSON.stringify(name)).join(", ");
