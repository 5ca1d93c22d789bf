/** One kind of request as the script reads it: what to do, and the numbers of the rule it is done by. */

import type { Policy } from "../../limit/config.ts";

/** What a request does. `reset` forgets. */
export type SpecOp = "take" | "check" | "give" | "charge" | "reset";

const LETTER: Readonly<Record<SpecOp, string>> = { take: "t", check: "c", give: "g", charge: "d", reset: "r" };

/** Requests of one spec ask for the same under the same rule. */
export class Spec {
  /** op, rate, period, capacity, floor, start, count: doubles as the shortest decimals that read back to their bits. */
  readonly fields: readonly string[];

  readonly op: SpecOp;
  readonly count: number;
  readonly reserve: boolean;
  readonly oneShard: boolean;
  /** The window grid's offset, ms; read only where there are windows. */
  readonly start: number;
  /** The same, as the core is told. */
  readonly at: { readonly start: number; readonly shard: boolean };

  constructor(op: SpecOp, count: number, reserve: boolean, oneShard: boolean, start: number, policy: Policy) {
    this.op = op;
    this.count = count;
    this.reserve = reserve;
    this.oneShard = oneShard;
    this.start = start;
    this.at = { start, shard: oneShard };
    const by = oneShard ? policy.shards : 1;
    const most = policy.maxReserved;
    this.fields = [
      LETTER[op],
      String(policy.rate / by),
      String(policy.period),
      String(policy.capacity / by),
      reserve ? (most === undefined ? "" : String(-(most / by))) : "0",
      policy.kind === "fixed window" ? String(start) : "",
      String(count),
    ];
  }

  /** Whether it is what a new spec of these would be, under the same policy. */
  is(op: SpecOp, count: number, reserve: boolean, oneShard: boolean, start: number): boolean {
    return (
      this.op === op &&
      this.count === count &&
      this.reserve === reserve &&
      this.oneShard === oneShard &&
      this.start === start
    );
  }
}

/** The specs of one program, each told once. */
export class Specs {
  many = 0;
  readonly args: string[] = [];
  readonly #numbers = new Map<Spec, string>();

  /** The number under which the script knows a request that is made so often in a row. */
  number(spec: Spec, repeats: number): string {
    const known = repeats === 1 ? this.#numbers.get(spec) : undefined;
    if (known !== undefined) return known;
    this.args.push(...spec.fields, String(repeats));
    const number = String(++this.many);
    if (repeats === 1) this.#numbers.set(spec, number);
    return number;
  }
}
