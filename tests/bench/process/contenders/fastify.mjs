// The plugin wraps this store's callback in a promise; here the callback is used directly, in the peer's favour. Its LRU
// holds 5,000 keys by default, and an evicted key starts afresh: it is configured to hold all keys.
import LocalStore from "@fastify/rate-limit/store/LocalStore.js";
import { versionOf } from "../../installed.mjs";

export function create({ capacity, periodMs, maxKeys }) {
  const store = new LocalStore(false, false, maxKeys);
  let answer;
  const keep = (error, hits) => {
    if (error) throw error;
    answer = hits;
  };

  function decide(key) {
    store.incr(key, keep, periodMs, capacity);
    const { current, ttl } = answer;
    return {
      ok: current <= capacity,
      remaining: Math.max(capacity - current, 0),
      limit: capacity,
      resetAt: Date.now() + ttl,
    };
  }

  return { kind: "fixed window", version: versionOf("@fastify/rate-limit"), decide };
}
