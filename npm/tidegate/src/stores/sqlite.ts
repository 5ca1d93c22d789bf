/**
 * State in SQLite: exact among all processes on one database, by each process's clock. `node:sqlite`, better-sqlite3,
 * Bun's `bun:sqlite`, libSQL, Turso and Cloudflare D1.
 *
 * @module
 */
import { during } from "#workers";
import { InputError, messageOf } from "../limit/errors.ts";
import type { AsyncStore } from "./contract.ts";
import { wraps } from "./failure.ts";
import { wellFormed } from "./record.ts";
import { notAClient, type TableOptions, tableStore } from "./table.ts";

/** A client with synchronous statements: `DatabaseSync` of `node:sqlite`, better-sqlite3, `Database` of `bun:sqlite`. */
export interface SyncSqlite {
  prepare(sql: string): { all(...values: never[]): unknown; run(...values: never[]): unknown };
}

/** A client of libSQL, as `createClient` of `@libsql/client` makes it. */
export interface LibSqlClient {
  execute(statement: { sql: string; args: string[] }): Promise<{ rows: unknown; rowsAffected: number }>;
}

/** A connection of Turso, as `connect` of `@tursodatabase/serverless` and `@tursodatabase/database` makes it. */
export interface TursoConnection {
  all(sql: string, ...values: string[]): Promise<unknown[]>;
  run(sql: string, ...values: string[]): Promise<{ changes: number }>;
}

/** A binding to a Cloudflare D1 database, such as `env.DB`. */
export interface D1Like {
  prepare(sql: string): {
    bind(...values: unknown[]): { all(): Promise<{ results: unknown; meta: { changes?: number } }> };
  };
  batch(statements: never[]): Promise<unknown>;
}

/** Any of the clients that {@link sqlite} accepts. */
export type SqliteLike = SyncSqlite | LibSqlClient | TursoConnection | D1Like;

/** Settings of {@link sqlite}. */
export type SqliteOptions = TableOptions;

/**
 * A store in a SQLite database. A batch of calls that share keys, `limitAll` too, is one `SELECT` and, if something is
 * taken, one conditional `INSERT … ON CONFLICT`. The first call creates the table.
 *
 * ```ts
 * import { DatabaseSync } from "node:sqlite";
 *
 * const store = sqlite(new DatabaseSync("limits.db"));
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 * No transaction stays open, so the store works over HTTP (D1, Turso), and while your own transactions run on another
 * connection. If another process wrote first, or the file is locked, the step is repeated until the call's deadline. A limit
 * with `shards` is one row. A local libSQL file is for one process: libSQL loses writes if two processes share one. Requires
 * SQLite 3.38. Calls reject with a `StoreError` if the database fails. Throws an `InputError` if an argument is wrong.
 */
export function sqlite(client: SqliteLike, options: SqliteOptions = {}): AsyncStore {
  const connection = connectionTo(client);
  const store = tableStore("sqlite", options, (table, index) => ({
    async create() {
      await connection.run(
        `CREATE TABLE IF NOT EXISTS ${table} (id TEXT PRIMARY KEY, state TEXT, drop_at INTEGER NOT NULL)`,
        [],
      );
      await connection.run(`CREATE INDEX IF NOT EXISTS ${index} ON ${table} (drop_at)`, []);
    },
    async read(ids) {
      // Turso leaves the escapes in a `value` that is a string.
      const query = `SELECT id, ${AS_TEXT} AS state FROM ${table} WHERE id IN (SELECT value ->> 0 FROM json_each(?))`;
      const rows = (await connection.all(query, [JSON.stringify(ids.map((id) => [idOf(id)]))])) as object[];
      // Rows may be arrays: `returnArrays` of node:sqlite.
      const states = new Map(rows.map((row) => Object.values(row) as [id: string, state: unknown]));
      return ids.map((id) => states.get(idOf(id)));
    },
    // All rows or none: the rows are inserted only if every state that was read is still there. Turso takes one json_each for
    // the other where it has no name.
    async write(rows) {
      const now = Date.now();
      const before = rows.map(({ id, before }) => [idOf(id), before]);
      const after = rows.filter(({ written }) => written);
      const changed = await connection.run(
        `INSERT INTO ${table} (id, state, drop_at)
        SELECT written.value ->> 0, written.value ->> 1, written.value ->> 2 FROM json_each(?) AS written
        WHERE NOT EXISTS (
          SELECT 1 FROM json_each(?) AS seen LEFT JOIN ${table} AS stored ON stored.id = seen.value ->> 0
          WHERE ${AS_TEXT} IS NOT seen.value ->> 1
        )
        ON CONFLICT (id) DO UPDATE SET state = excluded.state, drop_at = excluded.drop_at`,
        [
          JSON.stringify(after.map(({ id, state, dropIn }) => [idOf(id), state, Math.ceil(now + dropIn)])),
          JSON.stringify(before),
        ],
      );
      return Number(changed) > 0;
    },
    async sweep(most) {
      const full = `SELECT id FROM ${table} WHERE drop_at <= CAST(? AS INTEGER) LIMIT ${most}`;
      await connection.run(`DELETE FROM ${table} WHERE id IN (${full})`, [String(Date.now())]);
    },
    isMissing: (error) => /no such table/i.test(messageOf(error)),
    // Turso's engine reports the last for tables of earlier versions: it reads no key of a table WITHOUT ROWID.
    isForeign: (error) => /no such column|has no column named|ON CONFLICT clause does not/i.test(messageOf(error)),
    // Reported before anything has changed. libSQL reports the last if the client's one connection is in a transaction.
    busy: (error) =>
      /database (table )?is (locked|busy)|SQLITE_BUSY|TRANSACTION_ACTIVE/i.test(messageOf(error))
        ? "database"
        : undefined,
    readsAgain: (error) => wraps(error, ({ code }) => CLOSED.includes(code)),
  }));
  // On D1 the requests of an isolate share steps.
  return Object.assign(store, { during });
}

/** The stored state as JSON carries it. A blob is not a state; it is compared too, so that a reset can replace it. */
const AS_TEXT = "CASE typeof(state) WHEN 'blob' THEN 'blob ' || hex(state) ELSE state END";

/** An identity as JSON and SQLite carry it: its JSON ends a string at NUL, and a database in UTF-16 replaces U+FFFE and U+FFFF. */
const idOf = (id: string): string => wellFormed(id).replace(/[%\0\ufffe\uffff]/g, encodeURIComponent);

/** A client, as the store uses it. */
interface Connection {
  all(sql: string, values: string[]): unknown;
  /** Runs a statement, and returns how many rows it changed. */
  run(sql: string, values: string[]): unknown;
}

/** What `fetch` and libSQL's WebSocket report if the server has closed the connection, perhaps as it was idle. */
const CLOSED: readonly unknown[] = ["UND_ERR_SOCKET", "HRANA_WEBSOCKET_ERROR"];

const NO_BINDING = "undefined; if it is a binding to D1, add it to `d1_databases` in wrangler.jsonc";

/** The connection through this client; throws if the client is not supported. */
function connectionTo(client: SqliteLike): Connection {
  const given = Object(client) as Record<string, unknown>;
  const { execute, all, iterate, prepare, batch, each, escapeId, transactional, $client } = given;
  const rule = "a database of node:sqlite, better-sqlite3, bun:sqlite, @libsql/client, Turso or Cloudflare D1";
  let other: string | undefined;
  if (client === undefined) other = NO_BINDING;
  // mysql2, mariadb and some databases of Drizzle have their own `execute`.
  else if (typeof escapeId === "function") other = "a client of MySQL; pass it to `mysql` of tidegate/mysql";
  else if (typeof transactional === "function") other = "MikroORM; pass a database of its driver";
  if (other !== undefined) throw new InputError("client", rule, client, other);
  if ($client !== undefined) throw notAClient(rule, client);
  if (typeof execute === "function") {
    const libSql = client as LibSqlClient;
    return {
      all: async (sql, args) => (await libSql.execute({ sql, args })).rows,
      run: async (sql, args) => (await libSql.execute({ sql, args })).rowsAffected,
    };
  }
  if (typeof all === "function" && typeof iterate === "function") {
    const turso = client as TursoConnection;
    return {
      all: (sql, values) => turso.all(sql, ...values),
      run: async (sql, values) => (await turso.run(sql, ...values)).changes,
    };
  }
  // Statements of sqlite3 and sql.js, which alone have `each`, return no rows.
  const isD1 = typeof batch === "function";
  if (typeof prepare !== "function" || typeof each === "function" || !canPrepare(client as Preparing, isD1)) {
    throw notAClient(rule, client);
  }
  if (isD1) {
    const d1 = client as D1Like;
    const call = (sql: string, values: string[]) =>
      d1
        .prepare(sql)
        .bind(...values)
        .all();
    return {
      all: async (sql, values) => (await call(sql, values)).results,
      run: async (sql, values) => (await call(sql, values)).meta.changes,
    };
  }
  const database = client as { prepare(sql: string): Statement };
  const prepared = new Map<string, Statement>();
  const on = <T>(sql: string, call: (statement: Statement) => T): T => {
    try {
      const statement = prepared.get(sql) ?? database.prepare(sql);
      prepared.set(sql, statement);
      return call(statement);
    } catch (error) {
      // A database of node:sqlite that was closed and opened again refuses the statements of before.
      prepared.clear();
      throw error;
    }
  };
  const changes = (): unknown => on("SELECT changes()", (statement) => Object.values(Object(statement.all()[0]))[0]);
  return {
    all: (sql, values) => on(sql, (statement) => statement.all(...values)),
    // Bun returns nothing before 1.1.14.
    run: (sql, values) => on(sql, (statement) => statement.run(...values)?.changes ?? changes()),
  };
}

interface Preparing {
  prepare(sql: string): { all?(...values: string[]): unknown; bind?: unknown; get?: unknown };
}

/**
 * Whether its statements are D1's, or take several values and return rows synchronously. Those of `libsql/promise` return
 * promises, and those of node-sqlite3-wasm drop all values but the first. Throws if SQLite is too old. On D1 it sends nothing.
 */
function canPrepare(client: Preparing, isD1: boolean): boolean {
  try {
    const statement = client.prepare("SELECT json_array(?) ->> 0 AS a, ? AS b");
    const rows = isD1 ? undefined : statement.all?.("a", "b");
    Promise.resolve(rows ?? statement).catch(() => {});
    if (isD1) return typeof statement.bind === "function" && statement.get === undefined;
    return Array.isArray(rows) && Object.values(Object(rows[0])).join("") === "ab";
  } catch (error) {
    const message = messageOf(error);
    // The database may be busy, or not open yet: then the first call reports it.
    if (!/syntax error|no such function/i.test(message)) return true;
    throw new InputError("client", "on SQLite 3.38 or newer", client, `an older one (${message})`);
  }
}

interface Statement {
  all(...values: string[]): unknown[];
  run(...values: string[]): { changes: unknown } | undefined;
}
