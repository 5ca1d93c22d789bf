// Convex's own calculation, with a Map for its table. Its rule: granted if the value is not negative,
// and a denial writes nothing.
import { calculateRateLimit } from "@convex-dev/rate-limiter";
import { versionOf } from "../../installed.mjs";

export function create({ capacity, rate, periodMs }) {
  const rows = new Map();
  const config = { kind: "token bucket", rate, period: periodMs, capacity };

  function decide(key) {
    const now = Date.now();
    const next = calculateRateLimit(rows.get(key) ?? null, config, now, 1);
    const ok = next.value >= 0;
    if (ok) rows.set(key, { value: next.value, ts: next.ts });
    const value = ok ? next.value : next.value + 1;
    return {
      ok,
      value,
      ts: next.ts,
      remaining: Math.floor(value),
      limit: capacity,
      retryAfter: next.retryAfter,
      resetAt: next.ts + ((capacity - value) * periodMs) / rate,
    };
  }

  return { kind: "token bucket", version: versionOf("@convex-dev/rate-limiter"), decide };
}
