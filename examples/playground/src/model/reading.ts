/** Projects stored rows to any time with the package's own function, without a store or a server. */
import type { Config, Decision, State } from "tidegate";
import { Limit, pool } from "tidegate/store";

export interface Row extends State {
  id: string;
}

/** One side's latest rows, and the policy that projects them. */
export class Reading {
  readonly #limit: Limit;
  readonly #start: number;
  readonly rows: readonly Row[];

  constructor(config: Config, rows: readonly Row[]) {
    this.#limit = new Limit("sandbox", config);
    this.#start = this.#limit.start(undefined);
    this.rows = rows;
  }

  /** The two numbers at that time, of all shards together. */
  at(now: number): State {
    const states = this.#states();
    const [only = null] = states;
    if (states.length === 1) return this.#limit.project(only, now, this.#start);
    const look = { op: "check", count: 0, reserve: false } as const;
    const { value, ts } = pool(this.#limit, states, look, now, this.#start).decision;
    return { value, ts };
  }

  #states(): (State | null)[] {
    const { shards } = this.#limit.policy;
    return Array.from({ length: shards }, (_, shard) => {
      return this.rows.find(({ id }) => id === this.#limit.identity(undefined, shard)) ?? null;
    });
  }
}

/** The bits of a double, as sixteen hexadecimal digits. */
export function bits(number: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
}

export const FIELDS = ["ok", "value", "ts", "remaining", "limit", "retryAt", "resetAt", "reserved", "reason"] as const;
export type Decided = Pick<Decision, (typeof FIELDS)[number] | "now" | "retryAfter">;

/** Whether two sides store the same bits. */
export function sameRows(a: readonly Row[], b: readonly Row[]): boolean {
  const same = (row: Row, other: Row | undefined): boolean =>
    row.id === other?.id && Object.is(row.value, other.value) && Object.is(row.ts, other.ts);
  return a.length === b.length && a.every((row, i) => same(row, b[i]));
}

/** What two answers say differently, to the bit; nothing where they are the same. */
export function differences(a: Decided, b: Decided): string[] {
  const fields = [...FIELDS, "now", "retryAfter"] as const;
  return fields.filter((field) => !Object.is(a[field], b[field])).map((field) => `${field}: ${a[field]}, ${b[field]}`);
}
