/** One script call: the keys that it is about and the requests on them, encoded once it is complete. */

import type { Deadline } from "../contract.ts";
import type { Call } from "./line.ts";
import type { Line } from "./line.ts";
import { type Spec, Specs } from "./spec.ts";
import type { Unit } from "./unit.ts";

/** A program under construction. */
export class Program {
  readonly lines: Map<string, Line> = new Map();
  units: Unit[] = [];
  /** How many requests it holds. */
  size = 0;
  /** The clock that was passed in; absent: the server's. */
  readonly now: number | undefined;

  /** The slot of its keys; 0 where there is no cluster. */
  readonly slot: number;

  constructor(now: number | undefined, slot: number) {
    this.now = now;
    this.slot = slot;
  }

  /** Takes out what nobody waits for any more, and returns it. */
  expired(now: number): { calls: [Line, Call][]; units: Unit[] } {
    const isOver = ({ deadline }: Call | Unit): boolean => deadline !== undefined && now >= deadline;
    const calls: [Line, Call][] = [];
    for (const line of this.lines.values()) {
      if (!line.calls.some(isOver)) continue;
      for (const call of line.calls) if (isOver(call)) calls.push([line, call]);
      line.calls = line.calls.filter((call) => !isOver(call));
    }
    const units = this.units.filter(isOver);
    if (units.length > 0) this.units = this.units.filter((unit) => !isOver(unit));
    this.size -= calls.length + units.reduce((sum, { members }) => sum + members.length, 0);
    return { calls, units };
  }

  /** When the last of its callers stops waiting (`performance.now()`); absent where one of them waits for good. */
  get deadline(): Deadline {
    const each = [...[...this.lines.values()].flatMap(({ calls }) => calls), ...this.units];
    const latest = each.reduce((most, { deadline = Number.POSITIVE_INFINITY }) => Math.max(most, deadline), 0);
    return latest === Number.POSITIVE_INFINITY ? undefined : latest;
  }

  /** The script's keys, and its arguments but for the deadline. Sets every line's index. */
  encode(text: boolean): { keys: string[]; args: string[] } {
    const specs = new Specs();
    const keys: string[] = [];
    const runs: string[] = [];
    const single = new Map<Spec, Line[]>();
    let runCount = 0;
    let plain = this.units.length === 0;
    for (const line of this.lines.values()) {
      const { calls } = line;
      const [first] = calls;
      if (first === undefined) continue;
      if (calls.length > 1 || first.spec.op === "reset") {
        plain = false;
        const steps = stepsOf(calls, specs);
        runs.push("1", String(steps.length), ...steps);
        runCount++;
        line.index = keys.push(line.place);
        continue;
      }
      // Keys that go through the same are told together.
      const same = single.get(first.spec);
      if (same === undefined) single.set(first.spec, [line]);
      else same.push(line);
    }
    const now = this.now === undefined ? "" : String(this.now);
    // Most calls only take from token buckets: the script has a short way for them.
    let usual = !text;
    for (const [spec, lines] of single) {
      if (spec.op !== "take" || spec.fields[5] !== "") usual = false;
      runs.push(String(lines.length), "1", specs.number(spec, 1));
      runCount++;
      for (const line of lines) line.index = keys.push(line.place);
    }
    const units: string[] = plain ? [] : [String(this.units.length)];
    for (const unit of this.units) {
      unit.encode(units, specs, (line) => {
        if (line.index === 0) line.index = keys.push(line.place);
        return String(line.index);
      });
    }
    if (usual && plain) {
      const usualRuns = [...single].flatMap(([spec, lines]) => [
        String(lines.length),
        ...spec.fields.slice(1, 5),
        spec.fields[6] as string,
      ]);
      return { keys, args: ["b", "2", now, String(single.size), ...usualRuns] };
    }
    const args = [text ? "t" : "b", plain ? "1" : "", now];
    args.push(String(specs.many), ...specs.args, String(runCount), ...runs, ...units);
    return { keys, args };
  }
}

/** Identical requests that follow each other on one key are told once, with how often. */
function stepsOf(calls: readonly Call[], specs: Specs): string[] {
  const steps: string[] = [];
  for (let i = 0; i < calls.length; ) {
    const { spec } = calls[i] as Call;
    let end = i + 1;
    while (calls[end]?.spec === spec) end++;
    steps.push(specs.number(spec, end - i));
    i = end;
  }
  return steps;
}
