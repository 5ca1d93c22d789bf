/** Deletes rows that are full, which are the same as none: a few of them after calls that make rows, or all by `purge`. */
import { MAX_NOW_MS } from "../../engine/generated/bounds.ts";
import { numberError } from "../../limit/config.ts";
import { ANY, checkTable, integerFrom } from "../../limit/checks.ts";
import { LONGEST_TIMER } from "../../limit/duration.ts";
import { within } from "../../limit/monotonic.ts";
import { type Send, statement } from "./client.ts";
import { faultOf } from "./fault.ts";
import { byteaOf } from "./statements.ts";

/** Settings of {@link PostgresStore.purge}. */
export interface PurgeOptions {
  /** Rows looked at in one statement: 1 to 1,000,000; default 1000. */
  slice?: number | undefined;
  /** The clock, epoch ms; default the database's. */
  now?: number | undefined;
}

const OPTIONS = { slice: integerFrom("an integer from 1 to 1000000", 1, 1_000_000), now: ANY };
/** One in this many calls that make a row cleans up, and looks at this many rows: four for each row that is made. */
const ONE_IN = 128;
const MISSING_RIGHTS = "42501";
const SLICE = 512;

/** Looks at one slice of the table, from a bytea on; returns how many rows it deleted, and where to continue. */
async function purgeSlice(send: Send, schema: string, slice: number, after: string, timeout: number, now?: number) {
  const text = `SELECT removed::text || ',' || coalesce(encode(next, 'hex'), '') AS answer FROM ${schema}.purge($1::text::int, $2::text::bytea, $3::text::float8)`;
  const values = [String(slice), after, now === undefined ? null : String(now)];
  const reply = await send(() => statement(text, values), timeout).reply;
  const [removed, next] = String(reply).split(",");
  return { removed: Number(removed), next: next === undefined || next === "" ? undefined : `\\x${next}` };
}

/** See {@link PostgresStore.purge}. */
export async function purge(send: Send, schema: string, options: PurgeOptions): Promise<number> {
  checkTable("purge", options, OPTIONS);
  const { slice = 1000, now } = options;
  if (now !== undefined && !(typeof now === "number" && now >= 0 && now <= MAX_NOW_MS)) throw numberError("now", now);
  let total = 0;
  for (let after: string | undefined = ""; after !== undefined; ) {
    const { removed, next } = await purgeSlice(send, schema, slice, after, LONGEST_TIMER, now);
    total += removed;
    after = next;
  }
  return total;
}

const givenUp = (): never => {
  throw new Error("no answer");
};

/**
 * The cleanup that needs no schedule: call it with the id of each row that was made. It walks over the table, and starts at such
 * a row: mostly a random one. An error is ignored, as a later call cleans up; missing rights are a warning, once.
 */
export function cleanupOf(send: Send, schema: string, timeout: number): (id: string) => Promise<void> {
  let after: string | undefined;
  let isRunning = false;
  let hasWarned = false;
  return async (id) => {
    if (isRunning || Math.random() >= 1 / ONE_IN) return;
    isRunning = true;
    try {
      const slice = purgeSlice(send, schema, SLICE, after ?? byteaOf(id), timeout);
      // A client may never settle what it sent to a server that is gone.
      const { next } = await within(timeout, slice, givenUp);
      after = next ?? "";
    } catch (error) {
      const { code, message } = faultOf(error, schema);
      if (code !== MISSING_RIGHTS || hasWarned) return;
      hasWarned = true;
      console.warn(`tidegate: full rows are not deleted, so the table grows: ${message}`);
    } finally {
      isRunning = false;
    }
  };
}
