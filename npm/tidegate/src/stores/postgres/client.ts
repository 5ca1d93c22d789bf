/** The clients that people have, by shape: each is asked one statement and answers with its one text. */
import { InputError, showInstead } from "../../errors.ts";

/** pg's `Pool` and `Client` (Neon's too), PGlite, or anything else with `query(text, values)`. */
export interface QueryClient {
  query(text: string, values?: unknown[]): PromiseLike<unknown>;
}
/** postgres.js: its `sql`, or the one that `sql.begin` and `sql.reserve` give. */
export interface UnsafeClient {
  unsafe(text: string, values?: never[], options?: { prepare?: boolean }): PromiseLike<unknown>;
}
/** A PostgreSQL client. */
export type PostgresClient = QueryClient | UnsafeClient;

/** One statement, with the name that a driver may prepare it under. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | boolean | null)[];
}

/** A statement of this text. A connection may know several schemas' or versions' ones: so the name is the text's own. */
export function statement(text: string, values: Statement["values"]): Statement {
  let name = names.get(text);
  if (name === undefined) {
    // FNV-1a, 64 bits: these are a handful of texts.
    let hash = 0xcbf29ce484222325n;
    for (let i = 0; i < text.length; i++) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(i))) * 0x100000001b3n);
    }
    name = `tidegate_${hash.toString(16)}`;
    names.set(text, name);
  }
  return { name, text, values };
}
const names = new Map<string, string>();

/** Sends one statement; what it answers is in the first column of its one row. */
export type Ask = (statement: Statement, timeout: number) => PromiseLike<unknown>;

const has = (client: object, name: string, type = "function"): boolean =>
  typeof (client as Record<string, unknown>)[name] === type;

/** pg's clients take a statement as an object, with a name to prepare it under and a time to wait. */
const takesObjects = (client: object): boolean =>
  has(client, "query") &&
  has(client, "connect") &&
  (has(client, "escapeIdentifier") || has(client, "totalCount", "number"));

/** Whether it is one connection, which takes one statement after another: pg's `Client` and PGlite. */
export const isOneConnection = (client: PostgresClient): boolean =>
  has(client, "query") &&
  !has(client, "totalCount", "number") &&
  (has(client, "escapeIdentifier") || has(client, "execProtocol"));

/** How to ask this client. Throws an `InputError` where it is none. */
export function askOf(client: PostgresClient, prepare: boolean): Ask {
  const given: unknown = client;
  if ((typeof given !== "object" && typeof given !== "function") || given === null) throw notAClient(given);
  if (has(given, "unsafe")) {
    const { unsafe } = client as UnsafeClient;
    return ({ text, values }) => unsafe.call(client, text, values as never[], { prepare }).then(answerOf);
  }
  if (!has(given, "query")) throw notAClient(given);
  const { query } = client as { query(this: unknown, statement: unknown, values?: unknown): PromiseLike<unknown> };
  if (takesObjects(given)) {
    return ({ name, text, values }, timeout) => {
      const statement = { text, values, query_timeout: timeout };
      return query.call(client, prepare ? { ...statement, name } : statement).then(answerOf);
    };
  }
  return ({ text, values }) => query.call(client, text, values).then(answerOf);
}

/** Runs one statement that has no answer and no values: by the simple protocol where the client tells them apart. */
export async function runOn(client: PostgresClient, text: string): Promise<void> {
  if (has(client, "unsafe")) await (client as UnsafeClient).unsafe(text);
  else if (has(client, "query")) await (client as QueryClient).query(text);
  else throw notAClient(client);
}

function notAClient(client: unknown): InputError {
  const rule = "a PostgreSQL client, with query(text, values) or unsafe(text, values)";
  return new InputError("client", rule, client, showInstead(client));
}

function answerOf(result: unknown): unknown {
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown } | null)?.rows;
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  if (Array.isArray(row)) return row[0];
  return (row as { answer?: unknown } | undefined)?.answer;
}
