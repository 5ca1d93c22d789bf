/**
 * Limits in PostgreSQL (and databases that are compatible: YugabyteDB, PGlite, Neon), shared by every server that uses
 * the database. Every call is one statement; concurrent calls share one.
 *
 * ```ts
 * import { Pool } from "pg";
 * import { defineLimits, MINUTE } from "tidegate";
 * import { postgres } from "tidegate/postgres";
 *
 * const store = postgres(new Pool());
 * await store.migrate(); // once, or `npx tidegate migrate`
 * const limits = defineLimits({ send: { kind: "token bucket", rate: 10, period: MINUTE } }, { store });
 * ```
 *
 * @module
 */
import { during } from "#workers";
import { ANY, checkTable, durationFrom, FLAG, integerFrom, msOf } from "../limit/checks.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { type Duration, LONGEST_TIMER } from "../limit/duration.ts";
import { LOOK } from "../limit/evaluator.ts";
import { checkLease, type LeaseOptions } from "../limiter/lease/options.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call, Deadline } from "./contract.ts";
import { cleanupOf, purge, type PurgeOptions } from "./postgres/cleanup.ts";
import { checkTransaction, databaseOf, isOneConnection, type PostgresClient, statement } from "./postgres/client.ts";
import { migrate, type MigrationOptions, quoted, SCHEMA } from "./postgres/migration.ts";
import { Queue } from "./postgres/queue.ts";
import { PendingRequest, type Request } from "./postgres/request.ts";
import { connectingBy } from "./connecting.ts";
import { layers } from "../limiter/layers.ts";

export { migrate, migration, type MigrationOptions } from "./postgres/migration.ts";
export type { PostgresClient, QueryClient, UnsafeClient } from "./postgres/client.ts";
export type { PurgeOptions } from "./postgres/cleanup.ts";

/** Settings of {@link postgres}. */
export interface PostgresOptions extends Pick<MigrationOptions, "schema"> {
  /**
   * Statements that run at a time, each on its own connection: 1 to 100. Default 2; 1 if the client is one connection. Calls
   * made meanwhile share the next statement, so more statements mean fewer calls in each.
   */
  statements?: number | undefined;
  /** Most calls in one statement: 1 to 10,000; default 256. */
  batch?: number | undefined;
  /**
   * How long the store waits for the answer to a statement before it sends another: ms from 1 to 2^31 - 1, or a string such as
   * `"5s"`; default 1000, and 3000 within a transaction. How long a call waits is the limiter's `timeout`. A call that was not
   * sent by its deadline is never sent, and takes nothing. A call that waits for a lock at its deadline takes nothing either. If
   * its reply is late or lost, its tokens may have been taken.
   */
  statementTimeout?: Duration | undefined;
  /** Whether pg and postgres.js prepare the statements; default `true`. `false` behind a pooler that cannot. */
  prepare?: boolean | undefined;
  /** Whether this process takes tokens of hot keys ahead, to decide without a statement: `true`, or the settings. Default: no. */
  lease?: boolean | LeaseOptions | undefined;
}

/** Ms after which pg gives up the first statement; a limiter waits for 2 s of them. */
const CONNECT_TIMEOUT = 10_000;
/** Ms; longer than `deadlock_timeout` (1 s), so that PostgreSQL ends a deadlock before the store gives both calls up. */
const TIMEOUT_IN_TRANSACTION = 3000;
const OPTIONS = {
  schema: SCHEMA,
  statements: integerFrom("an integer from 1 to 100", 1, 100),
  batch: integerFrom("an integer from 1 to 10000", 1, 10_000),
  statementTimeout: durationFrom(1, LONGEST_TIMER, true),
  prepare: FLAG,
  lease: ANY,
};

export type { PostgresStore };

/** Limits in a PostgreSQL database. Made by {@link postgres}. */
class PostgresStore implements AsyncStore {
  readonly name = "postgres";
  readonly sync = false;
  readonly layers: typeof layers = layers;
  /** In a Worker, calls of several requests share a statement. */
  readonly during: AsyncStore["during"] = during;
  readonly lease: PostgresOptions["lease"];
  /** Set on what {@link PostgresStore.within} returns: an error there rejects, so that the transaction rolls back. */
  readonly inTransaction?: true;
  readonly #client: PostgresClient;
  readonly #options: PostgresOptions;
  readonly #schema: string;
  readonly #queue: Queue;
  readonly #connecting: () => Promise<unknown> | undefined;

  constructor(client: PostgresClient, options: PostgresOptions = {}, transaction = false) {
    checkTable("postgres", options, OPTIONS);
    const {
      schema = "tidegate",
      statements = 2,
      batch = 256,
      statementTimeout = transaction ? TIMEOUT_IN_TRANSACTION : 1000,
      prepare = true,
      lease,
    } = options;
    checkLease(lease);
    // What a transaction takes is its own until it commits.
    this.lease = transaction ? undefined : lease;
    if (transaction) this.inTransaction = true;
    this.#client = client;
    this.#options = options;
    this.#schema = quoted(schema);
    const { send } = databaseOf(client, prepare);
    const timeout = msOf(statementTimeout);
    const hello = () => statement("SELECT 1", []);
    this.#connecting = transaction ? () => undefined : connectingBy(async () => send(hello, CONNECT_TIMEOUT).reply);
    this.#queue = new Queue({
      send,
      schema: this.#schema,
      statements: transaction || isOneConnection(client) ? 1 : statements,
      batch,
      timeout,
      transaction,
      cleanup: transaction ? undefined : cleanupOf(send, this.#schema, timeout),
    });
  }

  /** Ends when a connection has carried out a first statement, or has failed to; absent after that. */
  get connecting(): Promise<unknown> | undefined {
    return this.#connecting();
  }

  decide(call: Call, now?: number, deadline?: Deadline): Promise<Decision> {
    const never = call.limit.never(call, now ?? Date.now());
    if (never !== undefined) return Promise.resolve(never);
    return this.#send({ operation: call.op, calls: [call], now, deadline });
  }

  decideAll(calls: readonly Call[], now?: number, deadline?: Deadline): Promise<AllDecision> {
    return this.#send({ operation: "limitAll", calls, now, deadline });
  }

  reset(limit: Limit, key: string | undefined, deadline?: Deadline): Promise<void> {
    const calls = [{ ...LOOK, op: "reset", limit, key }] as const;
    return this.#send({ operation: "reset", calls, now: undefined, deadline });
  }

  async getValue(limit: Limit, key: string | undefined, now?: number, deadline?: Deadline): Promise<State> {
    const calls = [{ ...LOOK, limit, key }];
    const { value, ts } = await this.#send<State>({ operation: "getValue", calls, now, deadline });
    return { value, ts };
  }

  /**
   * The same store inside a transaction of yours: `client` is the one that the transaction is on. What is taken is kept
   * if it commits, and comes back if it rolls back; until then the rows are locked. Nothing is retried, and calls have no
   * deadline and no `onStoreError`. An error, such as 40001 or 40P01, rejects: run the transaction again.
   *
   * ```ts
   * await sql.begin(async (tx) => {
   *   const limits = defineLimits(configs, { store: store.within(tx) });
   *   const d = await limits.limit("order", { key });
   *   if (d.ok) await tx`INSERT INTO orders …`;
   * });
   * ```
   *
   * Throws an `InputError` if it is the client that makes transactions, such as a pool: nothing would roll back.
   */
  within(client: PostgresClient): PostgresStore {
    // The constructor refuses what is no client at all: that has another remedy.
    const store = new PostgresStore(client, this.#options, true);
    checkTransaction(client);
    return store;
  }

  /**
   * Makes the schema that the store needs, or brings it up to this version: see {@link migrate}.
   *
   * ```ts
   * await store.migrate();
   * ```
   */
  migrate(options: Pick<MigrationOptions, "unlogged"> = {}): Promise<void> {
    return migrate(this.#client, { ...options, schema: this.#options.schema });
  }

  /**
   * Deletes the rows of all limits that have been full for an hour, which decide like absent ones. Returns how many. Each slice
   * of `slice` rows is a separate statement, which waits for no lock. The store does this automatically, a slice at a time,
   * after calls that insert rows. In SQL: `CALL tidegate.sweep()`.
   *
   * ```ts
   * await store.purge();
   * ```
   */
  purge(options: PurgeOptions = {}): Promise<number> {
    return purge(databaseOf(this.#client, false).send, this.#schema, options);
  }

  #send<T>(request: Request): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.add(new PendingRequest(request, resolve as (reply: unknown) => void, reject));
    });
  }
}

/**
 * A store on this client: pg's `Pool` or `Client`, postgres.js, PGlite, or anything with `query(text, values)`. The
 * database needs the {@link migration} once. Throws an `InputError` if it is not a client or a setting is wrong.
 */
export function postgres(client: PostgresClient, options: PostgresOptions = {}): PostgresStore {
  return new PostgresStore(client, options);
}
