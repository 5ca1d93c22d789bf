/** The algebra of a lease, which the core has. */
import { decisionOf, refuse } from "../../engine/answer.ts";
import { distributed } from "../../engine/distributed.ts";
import { KINDS, UNDECIDED } from "../../engine/generated/wire.ts";
import { type Policy, writePolicy } from "../../limit/config.ts";
import type { Decision, State } from "../../limit/decision.ts";

/** The decision on a lease. */
export interface LeaseDecision {
  readonly decision: Decision;
  /** Leased tokens that are left. */
  readonly left: number;
  /** Where `false`, only the store can decide; the decision is the one where it holds the rest. */
  readonly settled: boolean;
}

/**
 * Takes leased tokens, or denies where the store, whose state was last `{ value, ts }`, cannot hold the rest. `start` is
 * `Limit.start` of the key.
 */
export function decideOnLease(
  policy: Policy,
  { value, ts }: State,
  left: number,
  count: number,
  now: number,
  start: number,
): LeaseDecision {
  const algebra = distributed();
  writePolicy(algebra.numbers, policy, start);
  const status = algebra.wasm.lease_spend(KINDS.indexOf(policy.kind), value, ts, left, now, count);
  refuse(status, { count, now, value, ts });
  const { numbers } = algebra;
  const decision = decisionOf(status, numbers, policy, Math.floor(now));
  return { decision, left: numbers[5] as number, settled: (status & UNDECIDED) === 0 };
}
