import type { Decision } from "../../decision.ts";
import type { Limit } from "../../limit.ts";
import type { Deadline, Op } from "../../store.ts";
import type { Before } from "./answer.ts";
import type { Line } from "./line.ts";
import type { Spec } from "./spec.ts";

/** One request on one key, from the turn in which it was made until its answer is there. */
export class Call {
  /** The answer; only where there is one. */
  decision: Decision | undefined = undefined;
  /** What the key held when this request came to its turn. */
  before: Before = null;
  /** The clock that it was answered by, ms. */
  now = 0;
  readonly spec: Spec;
  readonly limit: Limit;
  readonly deadline: Deadline;
  readonly resolve: (call: Call) => void;
  readonly reject: (error: unknown) => void;

  constructor(
    spec: Spec,
    limit: Limit,
    deadline: Deadline,
    resolve: (call: Call) => void,
    reject: (error: unknown) => void,
  ) {
    this.spec = spec;
    this.limit = limit;
    this.deadline = deadline;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Evaluates what the server did. Returns how many requests were granted by it. */
  replay(line: Line, now: number): number {
    this.now = now;
    const { spec } = this;
    if (spec.op === "reset") {
      line.state = null;
      line.corrupt = false;
      return 0;
    }
    this.before = line.corrupt ? line.before : line.state;
    if (line.corrupt) return 0;
    const { decision, state } = this.limit.evaluate(line.state, spec as Spec & { op: Op }, now, spec.at);
    this.decision = decision;
    line.state = state;
    return decision.ok ? 1 : 0;
  }
}
