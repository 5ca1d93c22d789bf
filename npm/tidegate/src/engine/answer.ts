/** Reads an engine's answer, a status word and eight numbers: a decision, or the error of a wrong number. */
import { numberError, type Policy } from "../limit/config.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { EXPECTS, type Field } from "./generated/bounds.ts";
import { INPUT_ERROR, NUMBERS, OK, REASON_SHIFT, REASONS, RESERVED, STATUS_AT } from "./generated/wire.ts";

/** The eight doubles that a call shares with the engine or the addon: see `crates/wire`. */
export type Numbers = Float64Array & Record<0 | 1 | 2 | 3 | 4 | 5 | 6 | 7, number>;

/** In the order of `tidegate_core::Field`, as the table's rows are. */
const FIELDS = Object.keys(EXPECTS) as Field[];

export function decisionOf(status: number, numbers: Numbers, policy: Policy, now: number): Decision {
  const retryAt = numbers[3];
  const waits = !Number.isNaN(retryAt);
  return {
    ok: (status & OK) !== 0,
    value: numbers[0],
    ts: numbers[1],
    remaining: numbers[2],
    limit: policy.capacity,
    retryAt: waits ? retryAt : undefined,
    retryAfter: waits ? retryAt - now : undefined,
    resetAt: numbers[4],
    reserved: (status & RESERVED) !== 0,
    reason: REASONS[(status >> REASON_SHIFT) & 3],
    now: now + 0, // -0 is 0
    policy,
  };
}

/** The decisions on calls on limits of these policies, of which each has its numbers and status in `answers`. */
export function decisionsOf(answers: Float64Array, policies: readonly Policy[], now: number): Decision[] {
  return policies.map((policy, i) => {
    const numbers = answers.subarray(i * NUMBERS, (i + 1) * NUMBERS) as Numbers;
    return decisionOf(numbers[STATUS_AT], numbers, policy, now);
  });
}

/** The decision on several calls: the status and `retryAt` (NaN if absent) of them all, and their decisions. */
export function allOf(status: number, retryAt: number, decisions: Decision[], now: number): AllDecision {
  const waits = !Number.isNaN(retryAt);
  return {
    ok: (status & OK) !== 0,
    retryAt: waits ? retryAt : undefined,
    retryAfter: waits ? retryAt - now : undefined,
    decisions,
  };
}

/** The error of a status word, and of the numbers that were passed. */
export function refusal(status: number, passed: Partial<Record<Field, unknown>>): Error {
  const field = FIELDS[status & 0xff];
  if ((status & INPUT_ERROR) === 0 || field === undefined) return new Error("the engine has no such limit");
  return numberError(field, passed[field]);
}

/** Throws if a status word is an error. */
export function refuse(status: number, passed: Partial<Record<Field, unknown>>): void {
  if (status >= INPUT_ERROR) throw refusal(status, passed);
}
