/** The core on states kept here: what every decision of a store must be, to the bit. */
import type { AllDecision, Call, Decision, State } from "tidegate/store";
import { combined } from "../../npm/tidegate/src/limit/combined.ts";

export class Model {
  readonly states = new Map<string, State>();

  #plan(call: Call, now: number): { id: string; decision: Decision; state: State | null } {
    const { limit, key } = call;
    const id = limit.identity(key);
    return { id, ...limit.evaluate(this.states.get(id) ?? null, call, now, { start: limit.start(key) }) };
  }

  decide(call: Call, now: number): Decision {
    const { id, decision, state } = this.#plan(call, now);
    if (state !== null) this.states.set(id, state);
    return decision;
  }

  /** Each call is on a limit and key of its own. */
  decideAll(calls: readonly Call[], now: number): AllDecision {
    const plans = calls.map((call) => this.#plan(call, now));
    const decisions = plans.map(({ decision }) => decision);
    const all = combined(decisions, now);
    if (all.ok) for (const { id, state } of plans) if (state !== null) this.states.set(id, state);
    return all;
  }
}
