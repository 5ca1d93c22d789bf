import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Deadline, Op } from "../contract.ts";
import type { Before } from "./answer.ts";
import type { Spec } from "./spec.ts";

/** Whose key it is. */
export interface Owner {
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly shard?: number | undefined;
}

/** One key of one script call: what is asked of it in turn, and then what it held. */
export class Line {
  /** Which key of the call it is, from 1; 0 until that is settled. */
  index = 0;
  calls: Call[] = [];
  /** What it held before, once the answer is there. */
  before: Before = null;
  /** What it holds at this point of the replay. */
  state: State | null = null;
  /** Whether what it holds at this point is no state. */
  corrupt = false;
  /** Where it stands on the server. */
  readonly place: string;
  readonly #of: Owner;

  constructor(place: string, of: Owner) {
    this.place = place;
    this.#of = of;
  }

  /** The limit's name, shard and key, for errors. */
  get identity(): string {
    const { limit, key, shard } = this.#of;
    return limit.identity(key, shard);
  }

  /** Takes over what the server found. */
  found(before: Before): void {
    this.before = before;
    this.corrupt = typeof before === "string";
    this.state = typeof before === "string" ? null : before;
  }
}

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
