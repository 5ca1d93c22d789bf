import type { AllDecision, Decision } from "../limit/decision.ts";

/**
 * The decision on a request. With several limits it is the binding one, and `decisions` has one for each: of denials the
 * one with the longest wait, otherwise the one with the fewest tokens left. A limit in shadow mode binds only where all are.
 */
export interface RequestDecision extends Decision {
  /** One decision for each limit, in order. */
  readonly decisions: readonly Decision[];
}

/** The decision in force among those of a request. */
export function bindingDecision(decided: Decision | AllDecision): RequestDecision {
  if (!("decisions" in decided)) return { ...decided, decisions: [decided] };
  const { ok, decisions, retryAt, retryAfter } = decided;
  const wait = ({ ok, shadow, retryAt = Number.POSITIVE_INFINITY }: Decision): number => {
    if (shadow !== undefined) return -2;
    return ok ? -1 : retryAt;
  };
  const binding = decisions.reduce((a, b) => {
    if (wait(a) !== wait(b)) return wait(a) > wait(b) ? a : b;
    return b.remaining < a.remaining ? b : a;
  });
  return { ...binding, ok, retryAt, retryAfter, decisions };
}
