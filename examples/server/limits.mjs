// All limits of this server. State is in memory: set `store` to share it between servers.
import { defineLimits, SECOND } from "tidegate";

export const limits = defineLimits({
  // Each client has 20 tokens at most, and gets one back every second.
  message: { kind: "token bucket", rate: 1, period: SECOND, capacity: 20 },
  // All clients together: three in each window of 30 seconds.
  trial: { kind: "fixed window", rate: 3, period: 30 * SECOND },
  // Sandboxes that one client may open in the playground.
  sandbox: { kind: "token bucket", rate: 1, period: SECOND, capacity: 60 },
  // A model that reads 100 tokens per second. Up to 1000 tokens can be reserved ahead.
  chat: { kind: "token bucket", rate: 100, period: SECOND, capacity: 500, maxReserved: 1000 },
});
