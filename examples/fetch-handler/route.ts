// A handler of Workers, Deno or Bun: it takes a Request and returns a Response.
import { defineLimits, SECOND } from "tidegate";
import { decisionOf, rateLimit } from "tidegate/fetch";

const limits = defineLimits({
  // Per user: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
});

/** Your sessions. All requests without one share a key: an unverified header would be a new client for each text. */
const users = new Map([["Bearer session-of-ada", "ada"]]);
const userOf = (request: Request): string => users.get(request.headers.get("authorization") ?? "") ?? "anonymous";

export const GET = rateLimit(limits, { name: "api", key: userOf }, (request) =>
  Response.json({ message: "hello", remaining: decisionOf(request)?.remaining }),
);
