/** The calls that a step decides on, and until when they wait. */
import type { Deadline, Now } from "../contract.ts";
import type { Target } from "../failure.ts";
import type { Steps } from "../steps.ts";

/** A call that is not answered yet. */
export interface Waiting {
  readonly targets: readonly Target[];
  /** Of the targets, in their order. */
  readonly ids: readonly string[];
  readonly body: (steps: Steps) => Promise<unknown>;
  readonly now: Now;
  readonly deadline: NonNullable<Deadline>;
  /** When it was made (`performance.now()`, ms). */
  readonly since: number;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** When callers stop waiting for a step (`performance.now()`, ms): later if this process did not run at that time. */
export interface Until {
  at: number;
}

/** The first deadline of these calls, `until` at the latest. */
export const firstDeadline = (calls: readonly Waiting[], until: Until): number =>
  Math.min(until.at, ...calls.map(({ deadline }) => deadline.at));

/** The calls whose deadline is later than `by` (`performance.now()`, ms); rejects the others. */
export function inTime(calls: readonly Waiting[], by: number, reason: Error): Waiting[] {
  return calls.filter(({ deadline, reject }) => {
    if (deadline.at > by) return true;
    reject(deadline.why ?? reason);
    return false;
  });
}
