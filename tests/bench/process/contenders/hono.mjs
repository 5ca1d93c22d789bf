import { MemoryStore } from "hono-rate-limiter";
import { versionOf } from "../../installed.mjs";

export function create({ capacity, periodMs }) {
  const store = new MemoryStore();
  store.init({ windowMs: periodMs });

  function decide(key) {
    const { totalHits, resetTime } = store.increment(key);
    return {
      ok: totalHits <= capacity,
      remaining: Math.max(capacity - totalHits, 0),
      limit: capacity,
      resetAt: resetTime.getTime(),
    };
  }

  return { kind: "fixed window", version: versionOf("hono-rate-limiter"), decide };
}
