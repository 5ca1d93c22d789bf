/** Looks at the table itself, past the store. */
import type { State } from "tidegate/store";
import { generalizedUtf8 } from "../../../npm/tidegate/src/engine/utf8.ts";

/** Runs one statement, and returns its rows. */
export type Rows = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;

const hex = (identity: string): string => Buffer.from(generalizedUtf8(identity)).toString("hex");

/** What is stored under an identity; `null` for nothing. */
export async function stateOf(rows: Rows, identity: string): Promise<State | null> {
  const text = `SELECT encode(float8send(value), 'hex') AS value, encode(float8send(ts), 'hex') AS ts
    FROM tidegate.states WHERE id = decode($1::text, 'hex')`;
  const [row] = await rows(text, [hex(identity)]);
  const number = (bits: unknown): number => Buffer.from(String(bits), "hex").readDoubleBE();
  return row === undefined ? null : { value: number(row["value"]), ts: number(row["ts"]) };
}

/** Where a row is stored and which transaction wrote it: equal before and after means that nothing touched it. */
export async function versionOf(rows: Rows, identity: string): Promise<unknown> {
  const text = `SELECT ctid::text AS ctid, xmin::text AS xmin, xmax::text AS xmax FROM tidegate.states
    WHERE id = decode($1::text, 'hex')`;
  return (await rows(text, [hex(identity)]))[0];
}
