/** Several requests that are carried out together, or not at all. */

import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Deadline, Op } from "../contract.ts";
import type { Line } from "./line.ts";
import type { Spec, Specs } from "./spec.ts";

/** One request of a unit. */
export interface Member {
  /** One key, the better of two shards, all shards as a pool, or the pool where the pair denies. */
  readonly ask: "key" | "pair" | "pool" | "both";
  readonly limit: Limit;
  /** The name under which its denial is remembered: where it stands on the server, without a shard. */
  readonly place: string;
  /** By the whole limit's rule. */
  readonly whole: Spec;
  /** By one shard's rule; absent where there are no shards. */
  readonly shard: Spec | undefined;
  /** The key; or the pair; or all shards. */
  readonly lines: readonly Line[];
  /** The two shards to ask first; absent: none. */
  readonly pair: readonly [Line, Line] | undefined;
}

interface Planned {
  readonly decision: Decision;
  readonly writes: readonly (readonly [Line, State])[];
}

const LETTER: Readonly<Record<Member["ask"], string>> = { key: "k", pair: "b", pool: "p", both: "s" };

export class Unit {
  decisions: Decision[] = [];
  /** What the members' keys held before, one list for each member. */
  before: (State | null)[][] = [];
  now = 0;
  /** A key that holds no state: nothing was done. */
  corrupt: Line | undefined = undefined;
  readonly members: readonly Member[];
  readonly deadline: Deadline;
  readonly resolve: (unit: Unit) => void;
  readonly reject: (error: unknown) => void;

  constructor(
    members: readonly Member[],
    deadline: Deadline,
    resolve: (unit: Unit) => void,
    reject: (error: unknown) => void,
  ) {
    this.members = members;
    this.deadline = deadline;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Appends the unit as the script reads it. */
  encode(args: string[], specs: Specs, index: (line: Line) => string): void {
    const spec = (one: Spec) => specs.number(one, 1);
    args.push(String(this.members.length));
    for (const { ask, whole, shard, lines, pair } of this.members) {
      args.push(LETTER[ask]);
      const places = lines.map(index);
      if (shard === undefined) args.push(places[0] as string, spec(whole));
      else {
        if (pair !== undefined) args.push(index(pair[0]), index(pair[1]), spec(shard));
        if (ask !== "pair") {
          args.push(String(places.length));
          // Most often the keys of a pool follow each other: then the first of them says it all.
          const from = Number(places[0]);
          if (places.every((place, i) => Number(place) === from + i)) args.push("", String(from));
          else for (const place of places) args.push(place);
          args.push(spec(whole), spec(shard));
        }
      }
    }
  }

  /** Evaluates what the server did. Returns how many members it granted. */
  replay(now: number): number {
    this.now = now;
    this.corrupt = this.members.flatMap((member) => member.lines).find((line) => line.corrupt);
    if (this.corrupt !== undefined) return 0;
    this.before = this.members.map((member) => member.lines.map((line) => line.state));
    const plans = this.members.map((member) => plan(member, now));
    this.decisions = plans.map((planned) => planned.decision);
    const granted = this.decisions.filter((decision) => decision.ok).length;
    if (granted === plans.length) {
      for (const { writes } of plans) for (const [line, state] of writes) line.state = state;
    }
    return granted;
  }
}

function plan({ ask, limit, whole, lines, pair }: Member, now: number): Planned {
  const call = whole as Spec & { op: Op };
  const { start } = whole;
  if (ask === "key") {
    const line = lines[0] as Line;
    const { decision, state } = limit.evaluate(line.state, call, now, whole.at);
    return { decision, writes: state === null || state === line.state ? [] : [[line, state]] };
  }
  if (pair !== undefined) {
    const never = limit.evaluate(null, call, now, whole.at).decision;
    if (never.reason === "exceeds capacity") return { decision: never, writes: [] };
    const { decision, state, which } = limit.better([pair[0].state, pair[1].state], call, now, start);
    const line = pair[which];
    const writes = state === null || state === line.state ? [] : [[line, state] as const];
    if (decision.ok || ask === "pair") return { decision, writes };
  }
  const { decision, states } = limit.pool(
    lines.map((line) => line.state),
    call,
    now,
    start,
  );
  return { decision, writes: states?.map((state, i) => [lines[i] as Line, state] as const) ?? [] };
}
