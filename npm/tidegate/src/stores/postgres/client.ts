/** PostgreSQL clients, ORMs too, by shape: each sends one statement and returns its one text. */
import { hide, InputError, show, showClient } from "../../limit/errors.ts";
import { within } from "../../limit/monotonic.ts";
import type { Wrapper } from "../failure.ts";

/** pg's `Pool` and `Client` (Neon's too), PGlite, or anything else with `query(text, values)`. */
export interface QueryClient {
  query(text: string, values?: unknown[]): PromiseLike<unknown>;
}
/** postgres.js: its `sql`, or the one that `sql.begin` and `sql.reserve` give. */
export interface UnsafeClient {
  unsafe(text: string, values?: never[], options?: { prepare?: boolean }): PromiseLike<unknown>;
}
/** Prisma: a `PrismaClient`, or the one that `prisma.$transaction` passes. */
interface PrismaLike {
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>;
  $executeRawUnsafe(text: string): PromiseLike<unknown>;
}
/** Drizzle's `db` on any driver of PostgreSQL, or the `tx` that `db.transaction` passes. */
interface DrizzleLike {
  execute(text: string): PromiseLike<unknown>;
}
/** A PostgreSQL client. */
export type PostgresClient = QueryClient | UnsafeClient | PrismaLike | DrizzleLike;

/** One statement, with the name that a driver may prepare it under. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | null)[];
}

/** The names of the statements, by their texts: a handful. */
const names = new Map<string, string>();

/** A statement of this text. A connection may prepare those of several schemas and versions: the text makes the name. */
export function statement(text: string, values: Statement["values"]): Statement {
  let name = names.get(text);
  if (name === undefined) {
    // FNV-1a, 64 bits.
    let hash = 0xcbf29ce484222325n;
    for (let i = 0; i < text.length; i++) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(i))) * 0x100000001b3n);
    }
    name = `tidegate_${hash.toString(16)}`;
    names.set(text, name);
  }
  return { name, text, values };
}

/** A statement that was passed to a client. */
export interface Sent {
  /** What is in the first column of the one row. */
  readonly reply: PromiseLike<unknown>;
  /** Withdraws it, so that it is not sent any more. `false` if it has been sent, or the client cannot withdraw it. */
  withdraw(): boolean;
}

/**
 * Sends one statement, made when a connection is free for it; `timeout` is in ms. If `make` throws, nothing is sent, and the
 * error is thrown or rejects the reply.
 */
export type Send = (make: () => Statement, timeout: number) => Sent;

/** A client, as the store uses it. */
interface Database {
  readonly send: Send;
  /** Runs one statement without values or reply: by the simple protocol if the client has both. */
  run(text: string): PromiseLike<unknown>;
}

const has = (client: unknown, name: string, type = "function"): boolean => typeof Object(client)[name] === type;

/** pg's `Pool`, and Neon's. */
const isPool = (client: unknown): boolean =>
  has(client, "query") && has(client, "connect") && has(client, "totalCount", "number");

/** pg's `Client`: it takes a statement as an object, with a name to prepare it under and a time to wait. */
const isPgClient = (client: unknown): boolean =>
  has(client, "query") && has(client, "connect") && has(client, "escapeIdentifier") && !isPool(client);

/** postgres.js, or Bun's `SQL`. The function that `neon()` makes has both; its `unsafe` only marks a part of a template. */
const isUnsafeClient = (client: unknown): boolean => has(client, "unsafe") && !has(client, "query");

/** Whether it is one connection, which takes one statement after another: pg's `Client` and PGlite. */
export const isOneConnection = (client: PostgresClient): boolean =>
  has(client, "query") && !isPool(client) && (has(client, "escapeIdentifier") || has(client, "execProtocol"));

/** Throws if the client sends its statements on any of several connections: a transaction is on one of them. */
export function checkTransaction(client: PostgresClient): void {
  if (!hasConnections(client)) return;
  const rule = "the client that the transaction is on, such as `tx` of `sql.begin(async (tx) => …)`";
  throw new InputError("client", rule, client, "the one that makes transactions");
}

/** pg's `Pool`, postgres.js, Bun's `SQL`, Prisma, TypeORM's `DataSource`, `db` of pg-promise, or Drizzle on one of them. */
function hasConnections(client: unknown): boolean {
  // A connection that was reserved has `release`, and a transaction `savepoint`.
  if (has(client, "begin") && !has(client, "savepoint") && !has(client, "release")) return true;
  const { $client, queryRunner } = Object(client) as { $client?: unknown; queryRunner?: unknown };
  const makes = has(client, "$connect") || has(client, "createQueryRunner") || has(client, "$pool", "object");
  // TypeORM's `dataSource.manager`: that of a transaction has a runner.
  const isRootManager = has(client, "getTreeRepository") && queryRunner === undefined;
  return makes || isRootManager || isPool(client) || ($client !== undefined && hasConnections($client));
}

type Query = (this: unknown, statement: unknown, values?: unknown) => PromiseLike<unknown>;

const RULE = "a PostgreSQL client, with query(text, values) or unsafe(text, values)";

/** ORMs and query builders that are no client, by a method of theirs, and what to pass in their place. */
const BUILDERS = [
  [
    "getQueryInterface",
    // Otherwise a statement goes to a replica, or is in the transaction of the request that sends it, with the calls of others.
    'Sequelize; pass { query: (text, bind) => sequelize.query(text, { bind, type: "SELECT", useMaster: true, transaction: null }) }',
  ],
  [
    "getUnitOfWork",
    // Likewise: `orm.em` forwards to the entity manager of the transaction that the code is in.
    "MikroORM's EntityManager; pass { query } on the Kysely of its fork, or of the transaction, as in the guide on PostgreSQL",
  ],
  ["executeQuery", "Kysely; pass { query: (text, values = []) => db.executeQuery(CompiledQuery.raw(text, values)) }"],
  ["raw", "Knex; pass pg's Pool, or { query } that writes the parameters as ?, as in the guide on PostgreSQL"],
] as const;

/** How to send statements to this client. Throws an `InputError` if it is not a PostgreSQL client. */
export function databaseOf(client: PostgresClient, prepare: boolean): Database {
  const other = otherDatabase(client);
  if (other !== undefined) throw new InputError("client", RULE, client, other);
  if (has(client, "$queryRawUnsafe")) {
    const prisma = client as PrismaLike;
    return {
      send: sending(({ text, values }) => prisma.$queryRawUnsafe(text, ...(values as readonly never[]))),
      run: (text) => prisma.$executeRawUnsafe(text),
    };
  }
  if (has(client, "execute") && !has(client, "query") && !has(client, "getUnitOfWork")) {
    const drizzle = client as DrizzleLike;
    if (takesNoText(drizzle)) {
      const rule = "Drizzle 0.34 or newer, or its driver, such as pg's Pool";
      throw new InputError("client", rule, client, "an older Drizzle");
    }
    // Drizzle wraps parameters in its own class.
    const written = ({ text, values }: Statement): string =>
      text.replace(/\$(\d+)(?=::text)/g, (_, n) => literal(values[Number(n) - 1] ?? null));
    return { send: sending((made) => drizzle.execute(written(made))), run: (text) => drizzle.execute(text) };
  }
  if (isUnsafeClient(client)) {
    // Bun's `SQL` is one of several databases.
    const { adapter = "postgres" } = Object((client as { options?: unknown }).options) as { adapter?: unknown };
    if (adapter !== "postgres") throw new InputError("client", RULE, client, `one of ${show(adapter)}`);
    const sql = client as UnsafeClient;
    return { send: unsafeSender(sql, prepare), run: (text) => sql.unsafe(text) };
  }
  // Sequelize's `query` takes options instead of the values.
  if (!has(client, "query") || has(client, "getQueryInterface")) {
    const [, builder] = BUILDERS.find(([method]) => has(client, method)) ?? [];
    throw new InputError("client", RULE, client, builder ?? showClient(client));
  }
  const { query } = client as { query: Query };
  return { send: querySender(client, query, prepare), run: (text) => query.call(client, text) };
}

/** Sends by a function that sends immediately, so nothing can be withdrawn. */
const sending =
  (query: (statement: Statement, timeout: number) => PromiseLike<unknown>): Send =>
  (make, timeout) => ({
    reply: query(make(), timeout).then(replyOf, (error) => Promise.reject(driverErrorOf(error))),
    withdraw: () => false,
  });

const NOT_CONNECTED =
  "the client is not connected; await client.connect() before the first call, and close the client after the last";

function querySender(client: PostgresClient, query: Query, prepare: boolean): Send {
  if (isPool(client)) return poolSender(client as unknown as Pool, prepare);
  if (!isPgClient(client)) return sending(({ text, values }) => query.call(client, text, values));
  return sending(async (made, timeout) => {
    // It would keep the statement until it is connected.
    const { _connected, _connecting } = client as { _connected?: unknown; _connecting?: unknown };
    if (_connected === false && _connecting === false) throw new Error(NOT_CONNECTED);
    return query.call(client, { ...objectOf(made, prepare), query_timeout: timeout });
  });
}

/** What this client of another database is, and what to pass; `undefined` if nothing shows that it is one. */
function otherDatabase(client: unknown): string | undefined {
  if (has(client, "maybeOneFirst")) return "slonik, whose `query` takes no text; pass pg's Pool";
  // mysql2 and mariadb: pg has `escapeIdentifier`.
  if (has(client, "escapeId")) return "a client of MySQL; pass it to `mysql` of tidegate/mysql";
  const { $client, dataSource, connection, _activeProvider } = Object(client) as Record<string, unknown>;
  // TypeORM's managers and runners have their `DataSource`, as `connection` before 1.0.
  const source = [client, dataSource, connection].find((x) => has(x, "createQueryRunner"));
  // Prisma's client has the type itself.
  const { type = _activeProvider } = Object(Object(source).options) as { type?: unknown };
  if (typeof type === "string" && !/postgres|cockroach/.test(type)) {
    return `one on ${show(type)}; pass that database's own client to its own store`;
  }
  return $client === undefined ? undefined : otherDatabase($client);
}

/** Drizzle before 0.34, which has no `$client` either. What `execute` makes is sent when it is awaited. */
function takesNoText(client: DrizzleLike): boolean {
  if (!("dialect" in client) || "$client" in client) return false;
  try {
    client.execute("SELECT 1");
    return false;
  } catch {
    return true;
  }
}

/**
 * The driver's own error. Around it Drizzle, TypeORM and Sequelize have one with the statement and its values, which
 * are the keys of many callers.
 */
function driverErrorOf(error: unknown): unknown {
  try {
    const wrapper = Object(error) as Wrapper;
    const { cause, driverError = cause, query, sql = query } = wrapper;
    // Sequelize 7 prints a warning if `original` is read.
    const original = driverError ?? wrapper.original;
    if (sql === undefined || !original) return error;
    // Sequelize adds them to the driver's error, too.
    hide(original, "sql");
    hide(original, "parameters");
    return original;
  } catch {
    // The error cannot be read.
    return error;
  }
}

/** A value in the text of a statement: `E''` reads backslashes alike, whatever `standard_conforming_strings` is. */
export function literal(value: Statement["values"][number]): string {
  return value === null ? "NULL" : `E'${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

const objectOf = ({ name, text, values }: Statement, prepare: boolean): object =>
  prepare ? { name, text, values } : { text, values };

/** What is used of a connection of pg's `Pool`. */
interface Connection {
  query: Query;
  release(error?: unknown): void;
  on(event: "error", listener: () => void): void;
  removeListener(event: "error", listener: () => void): void;
}
interface Pool {
  connect(acquired: (error: unknown, connection?: Connection) => void): PromiseLike<Connection> | undefined;
}
const ignore = (): void => {};
/** pg's own `query_timeout` counts also while this process does not run, and ends a query whose reply has arrived. */
const late = (): never => {
  throw new Error("no answer; its connection is closed");
};

/** The session is read-only, in a transaction that failed, or without its prepared statements: each call on it would fail. */
const OF_SESSION = /^2[56]/;

/**
 * A connection of the pool, with a listener: without one an error of the connection ends the process. A promise would be too
 * late for that, as the server may end a connection in the packet in which it reports it as ready.
 */
const acquire = (pool: Pool): Promise<Connection> =>
  new Promise((resolve, reject) => {
    let isAcquired = false;
    const acquired = (connection: Connection | undefined): void => {
      if (isAcquired || connection === undefined) return;
      isAcquired = true;
      connection.on("error", ignore);
      resolve(connection);
    };
    const returned = pool.connect((error, connection) => {
      if (connection === undefined) reject(error);
      else acquired(connection);
    });
    // A `connect` of the application's own may take no callback, or take one and return a promise too.
    returned?.then(acquired).then(undefined, reject);
  });

/** Returns the connection to the pool, which closes it after an error. */
function release(connection: Connection, failed?: unknown): void {
  connection.removeListener("error", ignore);
  connection.release(failed);
}

/**
 * A connection is taken here, and not by `pool.query`: the statement is made once there is one. An error of the statement
 * alone, such as a serialization failure, keeps the connection. `pool.query` closes it after every error.
 */
function poolSender(pool: Pool, prepare: boolean): Send {
  return (make, timeout) => {
    let state: "waiting" | "sent" | "withdrawn" = "waiting";
    const run = async (): Promise<unknown> => {
      const connection = await acquire(pool);
      let made: Statement;
      try {
        if (state === "withdrawn") throw new Error("withdrawn");
        made = make();
      } catch (error) {
        release(connection);
        throw error;
      }
      state = "sent";
      let failed: unknown;
      try {
        return replyOf(await within(timeout, connection.query(objectOf(made, prepare)), late));
      } catch (error) {
        const { severity, code } = Object(error) as { severity?: unknown; code?: unknown };
        failed = severity === "ERROR" && !OF_SESSION.test(String(code)) ? undefined : (error ?? true);
        throw error;
      } finally {
        release(connection, failed);
      }
    };
    return {
      reply: run(),
      withdraw: () => {
        if (state === "waiting") state = "withdrawn";
        return state === "withdrawn";
      },
    };
  };
}

/** What is used of a query of postgres.js: it has a state from when a connection takes it. */
interface UnsafeQuery extends PromiseLike<unknown> {
  readonly state?: unknown;
  cancel?: () => unknown;
}

function unsafeSender(client: UnsafeClient, prepare: boolean): Send {
  return (make) => {
    const { text, values } = make();
    const query = client.unsafe(text, values as never[], { prepare }) as UnsafeQuery;
    return {
      reply: query.then(replyOf),
      withdraw: () => {
        if (query.state !== null || typeof query.cancel !== "function") return false;
        query.cancel();
        return true;
      },
    };
  };
}

function replyOf(result: unknown): unknown {
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown } | null | undefined)?.rows;
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  // By its place, for a client may rename columns.
  return Object.values((row ?? {}) as object)[0];
}
