import { defineLimits, SECOND } from "tidegate";

/** Shared by route handlers, the proxy and server actions. On more than one instance add a store: `redis(client)`. */
export const limits = defineLimits({
  // Per client: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
});
