import { MemoryStore } from "express-rate-limit";
import { versionOf } from "../../installed.mjs";

export function create({ capacity, periodMs }) {
  const store = new MemoryStore();
  store.init({ windowMs: periodMs });

  async function decide(key) {
    const { totalHits, resetTime } = await store.increment(key);
    return {
      ok: totalHits <= capacity,
      remaining: Math.max(capacity - totalHits, 0),
      limit: capacity,
      resetAt: resetTime.getTime(),
    };
  }

  return { kind: "fixed window", version: versionOf("express-rate-limit"), promised: true, decide };
}
