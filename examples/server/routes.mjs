// Each route calls the limiter first. A handler gets the request's URL, the client's key, and the JSON of the body.
import { answer } from "./answer.mjs";
import { limits } from "./limits.mjs";
import { sandboxRoutes } from "./visitors.mjs";

/** An integer from the client: `otherwise` if it is missing or invalid, and clamped to its bounds. */
function chosen(url, name, { otherwise, least, most }) {
  const text = url.searchParams.get(name) ?? "";
  return /^-?\d{1,15}$/.test(text) ? Math.min(Math.max(Number(text), least), most) : otherwise;
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
    // It is paid for: run it at that time, without another request.
    const { retryAt: runAt, retryAfter } = decision;
    return answer(decision, { message: `accepted, to be run in ${retryAfter} ms`, runAt }, 202);
  },

  "GET /api/value": (_url, key) => ({
    status: 200,
    headers: {},
    body: { ...limits.getValue("message", { key }), now: Date.now(), key },
  }),

  ...sandboxRoutes,
};
