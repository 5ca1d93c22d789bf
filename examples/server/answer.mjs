// Turns a decision into an HTTP response.
import { PROBLEM_JSON, problem, rateLimitHeaders, statusOf } from "tidegate/http";

/** The two numbers, with which the client projects the limit by itself. */
const numbers = ({ value, ts, now }) => ({ value, ts, now });

/** Granted: `body`. Denied: 429 with Retry-After and a problem, or 400 if no wait would help. */
export function answer(decision, body, status = 200) {
  const headers = rateLimitHeaders(decision);
  if (decision.ok) return { status, headers, body: { ...body, ...numbers(decision) } };
  return {
    status: statusOf(decision),
    headers: { ...headers, "Content-Type": PROBLEM_JSON },
    body: { ...problem(decision), ...numbers(decision) },
  };
}
