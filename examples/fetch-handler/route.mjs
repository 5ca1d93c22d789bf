// A route handler as Next.js, SvelteKit, Workers, Deno and Bun have it: a Request goes in, a Response comes out.
import { defineLimits, SECOND } from "tidegate";
import { decisionOf, rateLimit } from "tidegate/fetch";

const limits = defineLimits({
  // Per user: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
});

/** Who asks, from what you have verified: a session, a token. `undefined` would be the client's address. */
const userOf = (request) => request.headers.get("authorization") ?? "anonymous";

export const GET = rateLimit(limits, { name: "api", key: userOf }, (request) =>
  Response.json({ message: "hello", remaining: decisionOf(request).remaining }),
);
