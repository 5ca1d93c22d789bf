// A denial is a rejected promise, so the adapter catches it, as its users do.
import { RateLimiterMemory } from "rate-limiter-flexible";
import { versionOf } from "../../installed.mjs";

export function create({ capacity, periodMs }) {
  const limiter = new RateLimiterMemory({ points: capacity, duration: periodMs / 1000 });

  async function decide(key) {
    let ok = true;
    let result;
    try {
      result = await limiter.consume(key);
    } catch (denied) {
      if (denied instanceof Error) throw denied;
      ok = false;
      result = denied;
    }
    return { ok, remaining: result.remainingPoints, limit: capacity, resetAt: Date.now() + result.msBeforeNext };
  }

  return { kind: "fixed window", version: versionOf("rate-limiter-flexible"), promised: true, decide };
}
