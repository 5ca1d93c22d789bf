// How a decision goes over HTTP.
import { PROBLEM_JSON, problem, rateLimitHeaders, statusOf } from "tidegate/http";

/** The client sees the two numbers, to project them by itself. */
const numbers = ({ value, ts, now }) => ({ value, ts, now });

/** Granted: what `body` says. Denied: 429 with Retry-After and a problem, or 400 where no wait would help. */
export function answer(decision, body, status = 200) {
  const headers = rateLimitHeaders(decision);
  if (decision.ok) return { status, headers, body: { ...body, ...numbers(decision) } };
  return {
    status: statusOf(decision),
    headers: { ...headers, "Content-Type": PROBLEM_JSON },
    body: { ...problem(decision), ...numbers(decision) },
  };
}
