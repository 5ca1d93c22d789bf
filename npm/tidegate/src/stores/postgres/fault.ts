/** What a failed statement means: why the server undid it, and what to do about it. */
import { show } from "../../limit/errors.ts";
import { type Wrapper, wrappedIn } from "../failure.ts";

/** Why the server undid a statement as a whole, or did not get it, so that it may be sent again. */
type Undone = "conflict" | "deadlock" | "lock" | "late" | "no connection" | "idle session";
const UNDONE: Readonly<Record<string, Undone>> = {
  "40001": "conflict",
  "40P01": "deadlock",
  "55P03": "lock",
  "53300": "no connection",
  // `idle_session_timeout`, which ends no session that executes a statement.
  "57P05": "idle session",
  // Raised by `in_time`; see `schema/rows.sql`.
  TG002: "late",
};
/** Schema, function or table does not exist. */
const MISSING = new Set(["3F000", "42883", "42P01"]);
/** The procedure cannot end the client's transaction, or the server has no such procedures. */
const NO_PROCEDURE = new Set(["2D000", "0A000", "42601", "42809"]);

const NO_PREPARE = "behind a pooler in transaction mode, set the option prepare: false";
const PRIMARY = "connect to the primary, in sessions that may write";
/** Data that PostgreSQL cannot compute with, a constraint, and what a trigger raises. */
const OF_ROW = /^(22|23|P0001$)/;
/** Where PostgreSQL raises that row-level security refuses a row; its code is that of missing rights, too. */
const ROW_SECURITY = "ExecWithCheckOptions";
/** What to do about an error of the set-up, by its code. */
const REMEDIES: Readonly<Record<string, string>> = {
  "42P05": NO_PREPARE,
  "26000": NO_PREPARE,
  "25006": PRIMARY,
  "42501": "the role needs the GRANTs of the guide, and the table no row-level security",
  "57014": "if the reason is the role's statement_timeout, set it above the limiter's timeout",
};

/** The meaning of a failed statement. */
export interface Fault {
  readonly message: string;
  readonly code: string | undefined;
  readonly undone: Undone | undefined;
  /** One of the rows is refused: by its numbers, a constraint, a trigger or row-level security. */
  readonly ofRow: boolean;
  /** `CALL` does not work here. */
  readonly noProcedure: boolean;
}

/** The driver's error, which Drizzle has in `cause`, and Prisma in `meta`: the innermost that has a code. */
function driverError(error: unknown): Pick<Wrapper, "code" | "message" | "routine"> {
  let found: ReturnType<typeof driverError> | undefined;
  for (const { code, message, routine, originalCode = code, originalMessage = message } of wrappedIn(error)) {
    if (found === undefined || typeof originalCode === "string")
      found = { code: originalCode, message: originalMessage, routine };
  }
  return found ?? {};
}

/** Reads what a client rejected with, which may be any value. */
export function faultOf(error: unknown, schema: string): Fault {
  const { code: given, message, routine } = driverError(error);
  const code = typeof given === "string" && given !== "" ? given : undefined;
  let text = typeof message === "string" ? message : typeof error === "string" ? error : "";
  if (text === "") text = code ?? `the client rejected with ${show(error)} instead of an error`;
  if (code !== undefined && MISSING.has(code)) {
    text = `the schema ${schema} is missing or older than this version: run npx tidegate migrate, or await store.migrate() (${text})`;
  }
  const remedy = code === undefined ? undefined : REMEDIES[code];
  if (remedy !== undefined) text = `${text}; ${remedy}`;
  return {
    message: text,
    code,
    undone: code === undefined ? undefined : UNDONE[code],
    ofRow: code !== undefined && (OF_ROW.test(code) || routine === ROW_SECURITY),
    noProcedure: code !== undefined && NO_PROCEDURE.has(code),
  };
}
