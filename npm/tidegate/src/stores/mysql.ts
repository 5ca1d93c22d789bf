/**
 * State in MySQL or MariaDB: exact among all processes on one database, by each process's clock. The clients mysql2 and
 * mariadb.
 *
 * @module
 */
import { hexOf } from "../engine/utf8.ts";
import { isBytes } from "../limit/realms.ts";
import { hide, InputError } from "../limit/errors.ts";
import type { AsyncStore } from "./contract.ts";
import { notAClient, OWN_TABLE, type Row, type TableOptions, tableStore } from "./table.ts";
import { KeyError } from "./failure.ts";

/** A pool or a connection with promises: of `mysql2/promise`, or of `mariadb`. */
export interface PromiseMysql {
  query(options: never, values: never): PromiseLike<unknown>;
}

/** A pool or a connection with callbacks: of `mysql2`. */
export interface CallbackMysql {
  promise(): PromiseMysql;
}

/** Any of the clients that {@link mysql} accepts. A client with only `query` may return rows without fields. */
export type MysqlLike = (PromiseMysql & ({ readonly execute: unknown } | { readonly batch: unknown })) | CallbackMysql;

/** Settings of {@link mysql}. */
export type MysqlOptions = TableOptions;

/**
 * Errors after which nothing was written: lock wait timeout, deadlock, a row that has changed, a group's rollback, and
 * MariaDB's `max_statement_time`.
 */
const BUSY: readonly unknown[] = [1205, 1213, 1020, 3101, 1969];
/** The server, its users or this account have no connection left: a client that does not wait for one of its own fails. Nothing was done. */
const NO_CONNECTION: readonly unknown[] = [1040, 1203, 1226];
/** The server has closed the connection, perhaps as it was idle (`wait_timeout`); a pool may pass it on before it notices. */
const CLOSED: readonly unknown[] = [
  "PROTOCOL_CONNECTION_LOST",
  "ER_SOCKET_UNEXPECTED_CLOSE",
  "ER_CLIENT_INTERACTION_TIMEOUT",
  "ER_CONNECTION_KILLED",
];
const NO_SUCH_TABLE = 1146;
const NO_SUCH_COLUMN = 1054;
const OUT_OF_RANGE = 1690;
/** Ms for which a key whose last write has no reply is not sent again: longer than the server waits for a lock. */
const LOCK_WAIT = 60_000;
/** Ms that a reply takes: one to a write that is carried out later than that before a deadline would come after it. */
const ROUND_TRIP = 5;
/** Sent again, a locked row would soon occupy every connection of the pool. */
const LOCKED = "a write on this key had no reply in time; its row may be locked";

/** Epoch seconds when the server evaluates it, after it has waited for locks: `NOW()` would be those of the statement's start. */
const CLOCK = "UNIX_TIMESTAMP(SYSDATE(6))";
/** A number out of range: it ends the statement, and undoes it. Not a constant, so it fails only if it is evaluated. */
const REFUSE = "EXP(SYSDATE())";

/**
 * A store in a MySQL or MariaDB database. A batch of calls that share keys, `limitAll` too, is one `SELECT` and, if something
 * is taken, one conditional `INSERT … ON DUPLICATE KEY UPDATE`. The first call creates the table.
 *
 * ```ts
 * import { createPool } from "mysql2/promise";
 *
 * const store = mysql(createPool({ uri: "mysql://app@localhost/app" }));
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 * No transaction stays open. After another process's write, a deadlock or a lock wait, the step is repeated until the call's
 * deadline. The server refuses a late write. A limit with `shards` is one row. Requires InnoDB,
 * and sessions with `autocommit`: pass the pool, not a connection that is in a transaction. Calls reject with a
 * `StoreError` if the database fails. Throws an `InputError` if an argument is wrong.
 */
export function mysql(client: MysqlLike, options: MysqlOptions = {}): AsyncStore {
  const query = queryOf(client);
  /** Ms of the server's clock less those of `performance.now()`. */
  let ahead = 0;
  /** When each write without a reply is given up (`performance.now()`, ms), by identity. */
  const unanswered = new Map<string, number>();
  /** Whether the table has been read, and its columns have no other types. */
  let isChecked = false;

  async function checkColumns(table: string): Promise<void> {
    // Proxies may refuse a query of the schema; an error of the server is also that of the query that follows.
    const rows = await query(othersOf(table), []).catch(() => []);
    const row: unknown = Object(rows)[0];
    const others: unknown = Array.isArray(row) ? row[0] : null;
    if (others === null) return;
    const shown = isBytes(others) ? new TextDecoder().decode(others) : String(others);
    const remedy = `make it as the guide does, or ${OWN_TABLE}`;
    throw new Error(`the table ${table.slice(1, -1)} has columns of other types (${shown}): ${remedy}`);
  }

  return tableStore("mysql", options, (table) => ({
    create: () =>
      query(
        `CREATE TABLE IF NOT EXISTS ${table} (
          id VARBINARY(1200) NOT NULL PRIMARY KEY,
          state VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
          drop_at BIGINT NOT NULL,
          INDEX (drop_at)
        ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
        [],
      ),
    async read(ids) {
      const now = performance.now();
      if (ids.some((id) => now < (unanswered.get(id) ?? 0))) throw new KeyError(LOCKED, false);
      if (!isChecked) await checkColumns(table);
      // Without its own name the column would have that of the expression, with the key: mysql2 compiles a parser for each
      // other list of columns.
      const states = ids.map((id, i) => `(SELECT state FROM ${table} WHERE id = ${literalOf(id)}) AS s${i}`);
      const rows = await query(`SELECT @@autocommit, ${CLOCK}, ${states.join()}`, []);
      const row: unknown = Object(rows)[0];
      if (!Array.isArray(row)) throw notRowsAndFields();
      const [autocommit, clock, ...found] = row as unknown[];
      if (Number(autocommit) !== 1) throw new Error("the sessions of the client must have autocommit = 1");
      isChecked = true;
      ahead = Number(clock) * 1000 - performance.now();
      // A client returns bytes if the character set of the session is `binary`.
      return found.map((state) => (isBytes(state) ? new TextDecoder().decode(state) : state));
    },
    async write(all, first) {
      // Every process locks rows in one order.
      const rows = all.map((row) => ({ ...row, id: literalOf(row.id) })).sort((a, b) => (a.id < b.id ? -1 : 1));
      const last = (first - ROUND_TRIP + ahead) / 1000;
      const [sql, values] = writeOf(table, rows, last);
      const givenUp = performance.now() + LOCK_WAIT;
      for (const { id } of all) unanswered.set(id, givenUp);
      try {
        await query(sql, values);
        return true;
      } catch (error) {
        if (errnoOf(error) === OUT_OF_RANGE) return false;
        throw error;
      } finally {
        for (const { id } of all) unanswered.delete(id);
      }
    },
    async sweep(most) {
      const full = "drop_at <= UNIX_TIMESTAMP()";
      const rows = await query(`SELECT HEX(id) FROM ${table} WHERE ${full} LIMIT ${most}`, []);
      const ids = (rows as string[][]).map(([id]) => `x'${id}'`);
      if (ids.length === 0) return;
      // By primary key, as writes lock rows: a condition on the index would deadlock with them.
      await query(`DELETE FROM ${table} WHERE id IN (${ids.join()}) AND ${full}`, []);
    },
    isMissing: (error) => errnoOf(error) === NO_SUCH_TABLE,
    isForeign: (error) => errnoOf(error) === NO_SUCH_COLUMN,
    busy(error) {
      if (NO_CONNECTION.includes(errnoOf(error))) return "database";
      return error instanceof KeyError || BUSY.includes(errnoOf(error)) ? "entries" : undefined;
    },
    readsAgain: (error) => CLOSED.includes(Object(error).code),
    unanswered: { write: new KeyError(LOCKED, false) },
    // A write is refused half a round trip early: its clock counts as read when the reply arrived.
    trips: 2.5,
  }));
}

/**
 * The query of the columns of other types than those of `create`, as text; `NULL` if there are none, or columns are missing. A
 * server whose SQL mode is not strict cuts off what is too long for a column: keys share a row, or a state is read as another.
 */
function othersOf(table: string): string {
  const named = `TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ${literalOf(table.slice(1, -1))}`;
  // The columns of a view have no keys.
  return `SELECT IF(COUNT(*) < 3, NULL, GROUP_CONCAT(CASE
      WHEN CASE COLUMN_NAME
        WHEN 'id' THEN DATA_TYPE <> 'varbinary' OR CHARACTER_MAXIMUM_LENGTH < 1200 OR COLUMN_KEY NOT IN ('PRI', 'UNI')
        WHEN 'state' THEN COALESCE(CHARACTER_MAXIMUM_LENGTH, 0) < 64
        ELSE DATA_TYPE <> 'bigint'
      END THEN CONCAT(COLUMN_NAME, ' ', COLUMN_TYPE, IF(COLUMN_NAME = 'id' AND COLUMN_KEY = '', ', not unique', ''))
    END ORDER BY ORDINAL_POSITION SEPARATOR ', '))
    FROM information_schema.COLUMNS
    WHERE ${named} AND COLUMN_NAME IN ('id', 'state', 'drop_at')
      AND NOT EXISTS (SELECT 1 FROM information_schema.VIEWS WHERE ${named})`;
}

/** The statement that writes these rows if each is as it was before, and the server's clock is before `last`, in seconds. */
function writeOf(table: string, rows: readonly Row[], last: number): [sql: string, values: unknown[]] {
  // The values of an absent row are evaluated before its insert waits for a lock. So each row is first inserted empty
  // (`drop_at` 0), which locks it, present or not; the update that follows evaluates the clock.
  const empty = rows.map(({ id }) => `(${id}, NULL, 0)`);
  const full = rows.map(({ id }) => `(${id}, ?, UNIX_TIMESTAMP() + ?)`);
  const sql = `INSERT INTO ${table} (id, state, drop_at) VALUES ${[...empty, ...full].join()}
        ON DUPLICATE KEY UPDATE
          drop_at = CASE
            WHEN VALUES(drop_at) = 0 THEN drop_at
            WHEN ${CLOCK} < ? AND (state <=> CASE id ${rows.map(({ id }) => `WHEN ${id} THEN ?`).join(" ")} END)
              THEN GREATEST(drop_at, VALUES(drop_at))
            ELSE ${REFUSE}
          END,
          state = IF(VALUES(drop_at) = 0, state, VALUES(state))`;
  const seconds = (ms: number): number => Math.ceil(Math.min(ms / 1000, Number.MAX_SAFE_INTEGER));
  const inserted = rows.flatMap(({ state, dropIn }) => [state, seconds(dropIn)]);
  return [sql, [...inserted, last, ...rows.map(({ before }) => before)]];
}

/** An identity in a statement. Hexadecimal has no character set, and no escapes, whose rules depend on the session. */
const literalOf = (id: string): string => `x'${hexOf(id)}'`;

const errnoOf = (error: unknown): unknown => Object(error).errno;

const notRowsAndFields = (): Error =>
  new TypeError("`query` of the client must return a promise of rows and fields, as a pool of mysql2 or mariadb does");

const CLIENTS =
  "a pool or a connection of mysql2 or mariadb, with promises: mysql2 1.7 or newer, mariadb 2 or newer, not `mariadb/callback`";

type Query = (sql: string, values: readonly unknown[]) => Promise<unknown>;

/** mysql2 returns rows and fields; mariadb 3.1 does with `metaAsArray`. The last three are a pool's own settings otherwise. */
const FORM = {
  rowsAsArray: true,
  metaAsArray: true,
  // mariadb before 3.3 takes no `?` with it.
  namedPlaceholders: false,
  nestTables: false,
  typeCast: (_column: unknown, next: () => unknown): unknown => next(),
};

/** Sends a statement through this client, and returns its rows as arrays. Throws if the client is not supported. */
function queryOf(client: MysqlLike): Query {
  const { promise, query, execute, batch, of } = Object(client) as Record<string, unknown>;
  // A cluster of mysql2 has a `query`, too, which fails.
  if (typeof of === "function") {
    const instead = 'cluster.of("name") of its primary, from mysql2/promise or mariadb';
    throw new InputError("client", CLIENTS, client, `a cluster of pools; pass ${instead}`);
  }
  const isPromised =
    typeof query === "function" &&
    // A third parameter is a callback: `mysql`, `mariadb/callback`.
    query.length < 3 &&
    // Without these, `query` is that of an ORM, or of a wrapper of `mysql` that returns rows alone.
    (typeof execute === "function" || typeof batch === "function");
  if (typeof promise !== "function" && !isPromised) throw notAClient(CLIENTS, client);
  const promised = (typeof promise === "function" ? (client as CallbackMysql).promise() : client) as {
    query(options: object, values: readonly unknown[]): PromiseLike<unknown>;
  };
  return async (sql, values) => {
    const result = await Promise.resolve(promised.query({ sql, ...FORM }, values)).catch(withoutStatement);
    // Before 3.1 mariadb returns rows, which have `meta`, or what a write has done.
    return Array.isArray(result) && !("meta" in result) ? result[0] : result;
  };
}

/** What a pool of mysql2 that is full by its own settings rejects with: it has sent nothing. These errors have no code. */
const FULL: readonly unknown[] = ["Queue limit reached.", "No connections available."];

/** A client's error without the statement, which has the keys of others: it is `sql` of both, and in mariadb's message, too. */
function withoutStatement(error: unknown): never {
  const { message } = Object(error) as { message?: unknown };
  if (FULL.includes(message)) throw new KeyError(`the pool is full: ${String(message)}`, false);
  hide(error, "sql");
  const end = typeof message === "string" ? message.indexOf("\nsql: ") : -1;
  if (end >= 0) (error as Error).message = (error as Error).message.slice(0, end);
  throw error;
}
