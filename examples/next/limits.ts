import { defineLimits, SECOND } from "tidegate";

const define = () =>
  defineLimits({
    // Per client: three at once, one more every ten seconds.
    api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
  });
/** Next.js evaluates this file more than once: for route handlers, for pages and actions, for the proxy. */
const shared = globalThis as { limits?: ReturnType<typeof define> };
shared.limits ??= define();

/** Shared by route handlers, pages, server actions and the proxy. On more than one instance add a store: `redis(client)`. */
export const limits = shared.limits;
