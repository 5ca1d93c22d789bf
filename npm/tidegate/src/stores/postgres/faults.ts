/** What an error of the client means, and the pause before a statement is sent again. */
import { show } from "../../limit/errors.ts";

/** ms; the pause is drawn evenly from 0 to twice as much each time, and never above the last. */
const FIRST_PAUSE = 2;
const MOST_PAUSE = 50;
/** A pause is at most this part of the time left, so that retries become denser towards the deadline. */
const PART_OF_REST = 1 / 4;

/** Why the server undid a statement as a whole, so that it may be sent again. */
type Undone = "conflict" | "deadlock" | "lock" | "late";
const UNDONE: Readonly<Record<string, Undone>> = {
  "40001": "conflict",
  "40P01": "deadlock",
  "55P03": "lock",
  // Raised by `in_time`; see `schema/rows.sql`.
  TG002: "late",
};
/** Schema, function or table does not exist. */
const MISSING = new Set(["3F000", "42883", "42P01"]);
/** The procedure cannot end the client's transaction, or the server has no such procedures. */
const NO_PROCEDURE = new Set(["2D000", "0A000", "42601", "42809"]);

/** What is known about a failed statement. */
export interface Fault {
  readonly message: string;
  readonly code: string | undefined;
  readonly undone: Undone | undefined;
  /** PostgreSQL cannot compute with a number of one of the rows. */
  readonly ofRow: boolean;
  /** `CALL` does not work here. */
  readonly noProcedure: boolean;
}

/** Reads what a client rejected with, which may be any value. */
export function faultOf(error: unknown, schema: string): Fault {
  const { code: given, message } = (typeof error === "object" && error !== null ? error : {}) as Record<
    string,
    unknown
  >;
  const code = typeof given === "string" && given !== "" ? given : undefined;
  let text = typeof message === "string" ? message : typeof error === "string" ? error : "";
  if (text === "") text = code ?? `the client rejected with ${show(error)} in place of an error`;
  if (code !== undefined && MISSING.has(code)) {
    text = `the schema ${schema} is missing or older than this version: run npx tidegate migrate, or await store.migrate() (${text})`;
  }
  return {
    message: text,
    code,
    undone: code === undefined ? undefined : UNDONE[code],
    ofRow: code?.startsWith("22") === true,
    noProcedure: code !== undefined && NO_PROCEDURE.has(code),
  };
}

/** Pauses before the next try. `false`: no time is left until then (`performance.now()`). */
export async function pause(tries: number, until: number): Promise<boolean> {
  const rest = until - performance.now();
  if (!(rest > 1)) return false;
  const ms = Math.random() * Math.min(MOST_PAUSE, FIRST_PAUSE * 2 ** tries, rest * PART_OF_REST);
  await new Promise((resolve) => setTimeout(resolve, ms));
  return true;
}
