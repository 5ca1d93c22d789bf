/** The decision on a request, of the decisions on its limits. */
import type { AllDecision, Decision } from "../limit/decision.ts";

/**
 * The decision on a request. With several limits it is the binding one, and `decisions` has one for each: of denials the
 * one with the longest wait, otherwise the one with the fewest tokens left. A limit in shadow mode binds only if all are.
 */
export interface RequestDecision extends Decision {
  /** One decision for each limit, in order. */
  readonly decisions: readonly Decision[];
}

/**
 * The decision on one limit as the one on the request. Field by field, since it is made for each request: a field that is
 * added after a spread takes Node.js 20 2 µs.
 */
function onRequest(
  decision: Decision,
  { ok, retryAt, retryAfter }: Decision | AllDecision,
  decisions: readonly Decision[],
): RequestDecision {
  const { value, ts, remaining, limit, resetAt, reserved, reason, now, policy, degraded, cause, shadow } = decision;
  const made: RequestDecision = {
    ok,
    value,
    ts,
    remaining,
    limit,
    retryAt,
    retryAfter,
    resetAt,
    reserved,
    reason,
    now,
    policy,
    decisions,
  };
  if (degraded !== undefined) Object.assign(made, { degraded, cause });
  if (shadow !== undefined) made.shadow = shadow;
  return made;
}

/** The decision in force among those of a request. */
export function bindingDecision(decided: Decision | AllDecision): RequestDecision {
  if (!("decisions" in decided)) return onRequest(decided, decided, [decided]);
  const { decisions } = decided;
  const wait = ({ ok, shadow, retryAt = Infinity }: Decision): number => {
    if (shadow !== undefined) return -2;
    return ok ? -1 : retryAt;
  };
  const binding = decisions.reduce((a, b) => {
    if (wait(a) !== wait(b)) return wait(a) > wait(b) ? a : b;
    return b.remaining < a.remaining ? b : a;
  });
  return onRequest(binding, decided, decisions);
}
