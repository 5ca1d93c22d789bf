// Each route asks the limiter first. A handler gets the request's URL and the client's key, and returns an answer.
import { PROBLEM_JSON, problem, rateLimitHeaders, statusOf } from "tidegate/http";
import { limits } from "./limits.mjs";

/** A whole number that the client chose: `otherwise` where there is none, and never out of bounds. */
function chosen(url, name, { otherwise, least, most }) {
  const text = url.searchParams.get(name) ?? "";
  return /^-?\d{1,15}$/.test(text) ? Math.min(Math.max(Number(text), least), most) : otherwise;
}

/** The client sees the two numbers, to project them by itself. */
const numbers = ({ value, ts, now }) => ({ value, ts, now });

/** Granted: what `body` says. Denied: 429 with Retry-After and a problem, or 400 where no wait would help. */
function answer(decision, body, status = 200) {
  const headers = rateLimitHeaders(decision);
  if (decision.ok) return { status, headers, body: { ...body, ...numbers(decision) } };
  return {
    status: statusOf(decision),
    headers: { ...headers, "Content-Type": PROBLEM_JSON },
    body: { ...problem(decision), ...numbers(decision) },
  };
}

export const routes = {
  "GET /api/message": (url, key) => {
    const count = chosen(url, "cost", { otherwise: 1, least: 1, most: 1000 });
    return answer(limits.limit("message", { key, count }), { message: `hello, that was ${count} of your tokens` });
  },

  "GET /api/trial": () => answer(limits.limit("trial"), { message: "one of the three trials of these 30 seconds" }),

  "POST /api/chat": (url, key) => {
    const count = chosen(url, "tokens", { otherwise: 100, least: 1, most: 100_000 });
    const decision = limits.limit("chat", { key, count, reserve: true });
    if (!decision.reserved) return answer(decision, { message: "run at once", runAt: decision.now });
    // It is paid for: whoever runs it at that time asks no more.
    const { retryAt: runAt, retryAfter } = decision;
    return answer(decision, { message: `accepted, to be run in ${retryAfter} ms`, runAt }, 202);
  },

  "GET /api/value": (_url, key) => ({
    status: 200,
    headers: {},
    body: { ...limits.getValue("message", { key }), now: Date.now(), key },
  }),
};
