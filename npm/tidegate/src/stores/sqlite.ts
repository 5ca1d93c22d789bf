/**
 * State in SQLite: exact among all processes on one database, by each process's clock. `node:sqlite`, better-sqlite3,
 * Bun's `bun:sqlite`, libSQL (Turso) and Cloudflare D1.
 *
 * @module
 */
import { decodeText, encodeText, NotAState } from "../limit/codec.ts";
import { checkFields, fieldTable } from "../limit/config.ts";
import { InputError, messageOf, showInstead } from "../limit/errors.ts";
import type { AsyncStore } from "./contract.ts";
import { wellFormed } from "./record.ts";
import { storeOf } from "./steps.ts";
import { Swaps, type Write } from "./swap.ts";

/** A client with synchronous statements: `DatabaseSync` of `node:sqlite`, better-sqlite3, `Database` of `bun:sqlite`. */
export interface SyncSqlite {
  prepare(sql: string): { all(...values: never[]): unknown; run(...values: never[]): unknown };
}

/** A client of libSQL, as `createClient` of `@libsql/client` makes it. */
export interface LibSqlClient {
  execute(statement: { sql: string; args: string[] }): Promise<{ rows: unknown; rowsAffected: number }>;
}

/** A binding to a Cloudflare D1 database, such as `env.DB`. */
export interface D1Like {
  prepare(sql: string): {
    bind(...values: unknown[]): { all(): Promise<{ results: unknown; meta: { changes?: number } }> };
  };
  batch(statements: never[]): Promise<unknown>;
}

/** Any of the clients that {@link sqlite} takes. */
export type SqliteLike = SyncSqlite | LibSqlClient | D1Like;

/** Settings of {@link sqlite}. */
export interface SqliteOptions {
  /** The table's name: 1 to 64 characters of `A-Z a-z 0-9 _`; default `"tidegate"`. Stores with the same one share their states. */
  table?: string | undefined;
}

const OPTIONS = fieldTable("table");
const NAME = "sqlite";
const TABLE = /^\w{1,64}$/;
/** Ms of a step without a deadline, its attempts included. */
const STEP_TIMEOUT = 10_000;
/** Ms for which a full state is kept: by then it is full by the clocks of other processes too. */
const SLACK = 60_000;
/** One write in so many also deletes full states, this many at most. */
const SWEEP_EVERY = 64;
const SWEEP_MOST = 256;

/**
 * A store in a SQLite database: one `SELECT` and, where something is taken, one conditional `INSERT … ON CONFLICT` for a
 * batch of calls on a key, `limitAll` included. The first call creates the table.
 *
 * ```ts
 * import { DatabaseSync } from "node:sqlite";
 *
 * const store = sqlite(new DatabaseSync("limits.db"));
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * No transaction is held open, so the store works over HTTP (D1, Turso) and beside transactions of yours on another
 * connection. A step that lost against another process, or met a locked file, is repeated until the call's deadline. A
 * limit with `shards` is one row. A local file of libSQL is for one process: libSQL loses writes where two processes share
 * one. Requires SQLite 3.38. Calls reject with a `StoreError` where the database fails. Throws
 * an `InputError` where an argument is wrong.
 */
export function sqlite(client: SqliteLike, options: SqliteOptions = {}): AsyncStore {
  const connection = connectionTo(client);
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "sqlite");
  const { table = "tidegate" } = options;
  if (typeof table !== "string" || !TABLE.test(table)) {
    throw new InputError("table", "1 to 64 characters of A-Z a-z 0-9 _", table);
  }
  const sql = statements(table);
  let writes = 0;
  let created: Promise<unknown> | undefined;

  async function create(): Promise<void> {
    await connection.run(sql.create, []);
    await connection.run(sql.index, []);
  }
  /** The table, created once; a failure is not kept. */
  function ready(): Promise<unknown> {
    created ??= create().catch((error: unknown) => {
      created = undefined;
      throw error;
    });
    return created;
  }

  const swaps = new Swaps<string | null>({
    name: NAME,
    stepTimeout: STEP_TIMEOUT,
    async read(ids) {
      await ready();
      const rows = (await connection.all(sql.read, [JSON.stringify(ids.map(idOf))])) as {
        id: string;
        state: string | null;
      }[];
      const states = new Map(rows.map(({ id, state }) => [id, state]));
      return ids.map((id) => {
        const state = states.get(idOf(id)) ?? null;
        return { value: state ?? undefined, version: state };
      });
    },
    decode(value: unknown) {
      if (typeof value !== "string") throw new NotAState(`what is stored must be text; got ${typeof value}`);
      return decodeText(value);
    },
    async swap(seen, changes) {
      await ready();
      // Before the write, so that a failure here is one of a step that took nothing.
      if (++writes % SWEEP_EVERY === 0) await connection.run(sql.sweep, [String(Date.now())]);
      const before = [...seen].map(([id, { version }]) => [idOf(id), version]);
      const rows = [...changes].map(([id, write]) => rowOf(id, write));
      return Number(await connection.run(sql.swap, [JSON.stringify(rows), JSON.stringify(before)])) > 0;
    },
    // Reported before anything has changed.
    isBusy: (error) => /database (table )?is (locked|busy)|SQLITE_BUSY/i.test(messageOf(error)),
  });
  return storeOf(NAME, (...step) => swaps.run(...step));
}

/** An identity as JSON and SQLite carry it: SQLite's JSON ends a string at NUL. */
const idOf = (id: string): string => wellFormed(id).replaceAll("%", "%25").replaceAll("\0", "%00");

/** A reset is a row without a state, which the sweep deletes. Bits of a double are safe in text, and not in every client. */
function rowOf(id: string, { state, fullIn }: Write): [id: string, state: string | null, dropAt: number] {
  return [idOf(id), state && encodeText(state), state === null ? 0 : Math.ceil(Date.now() + fullIn + SLACK)];
}

function statements(table: string) {
  return {
    create: `CREATE TABLE IF NOT EXISTS ${table} (id TEXT PRIMARY KEY, state TEXT, drop_at INTEGER NOT NULL) WITHOUT ROWID`,
    index: `CREATE INDEX IF NOT EXISTS ${table}_drop_at ON ${table} (drop_at)`,
    read: `SELECT id, state FROM ${table} WHERE id IN (SELECT value FROM json_each(?))`,
    // All rows or none: the rows are inserted only if every state that was read is still there.
    swap: `INSERT INTO ${table} (id, state, drop_at)
      SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
      WHERE NOT EXISTS (
        SELECT 1 FROM json_each(?) AS seen LEFT JOIN ${table} AS stored ON stored.id = seen.value ->> 0
        WHERE stored.state IS NOT seen.value ->> 1
      )
      ON CONFLICT (id) DO UPDATE SET state = excluded.state, drop_at = excluded.drop_at`,
    sweep: `DELETE FROM ${table} WHERE id IN (
        SELECT id FROM ${table} WHERE drop_at <= CAST(? AS INTEGER) LIMIT ${SWEEP_MOST}
      )`,
  };
}

/** A client, as the store uses it. */
interface Connection {
  /** Rows of a query. */
  all(sql: string, values: string[]): unknown;
  /** Runs a statement, and returns how many rows it changed. */
  run(sql: string, values: string[]): unknown;
}

/** The connection through this client; throws where the client is not supported. */
function connectionTo(client: SqliteLike): Connection {
  const { execute, prepare, batch } = Object(client) as Record<string, unknown>;
  if (typeof execute === "function") {
    const libSql = client as LibSqlClient;
    return {
      all: async (sql, args) => (await libSql.execute({ sql, args })).rows,
      run: async (sql, args) => (await libSql.execute({ sql, args })).rowsAffected,
    };
  }
  if (typeof prepare !== "function") {
    const rule = "a database of node:sqlite, better-sqlite3, bun:sqlite, @libsql/client or Cloudflare D1";
    throw new InputError("client", rule, client, showInstead(client));
  }
  if (typeof batch === "function") {
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
  const statement = (sql: string): Statement => {
    const one = prepared.get(sql) ?? database.prepare(sql);
    prepared.set(sql, one);
    return one;
  };
  return {
    all: (sql, values) => statement(sql).all(...values),
    run: (sql, values) => statement(sql).run(...values).changes,
  };
}

interface Statement {
  all(...values: string[]): unknown;
  run(...values: string[]): { changes: unknown };
}
