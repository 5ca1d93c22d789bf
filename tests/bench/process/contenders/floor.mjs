// Decides nothing: the clock read, the object, and the loop. The difference to this row is the limiter.

export function create({ capacity, periodMs }) {
  return {
    kind: "none",
    decides: false,
    decide(key) {
      const now = Date.now();
      return {
        ok: key !== "",
        value: capacity,
        ts: now,
        remaining: capacity,
        limit: capacity,
        resetAt: now + periodMs,
      };
    },
  };
}
