/** Combines the decisions of an all-or-nothing call. */
import type { AllDecision, Decision } from "./decision.ts";

/**
 * One decision for several: denied if one of them is. `retryAt` is the latest of the denials, or of all if all are
 * granted.
 */
export function combined(decisions: Decision[], now: number): AllDecision {
  const ok = decisions.every((decision) => decision.ok);
  const times = decisions.filter((decision) => decision.ok === ok).map((decision) => decision.retryAt);
  const defined = times.filter((time) => time !== undefined);
  const never = defined.length === 0 || (!ok && defined.length < times.length);
  const retryAt = never ? undefined : Math.max(...defined);
  return { ok, retryAt, retryAfter: retryAt === undefined ? undefined : retryAt - Math.floor(now), decisions };
}
