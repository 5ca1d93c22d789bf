/**
 * State in a Convex table, inside a mutation: what is taken is taken or rolled back with everything else in it.
 *
 * @module
 */
import { checkMethods, checkTable, STRING } from "../limit/checks.ts";
import type { Decision, State } from "../limit/decision.ts";
import { InputError, RateLimitError, showInstead } from "../limit/errors.ts";
import type { AsyncStore } from "./contract.ts";
import { wellFormed } from "./record.ts";
import { SLACK, type Transaction } from "./steps.ts";
import { transactional } from "./transactional.ts";

/** What is used of a mutation's (or, for `check` and `getValue`, a query's) `ctx.db`, by shape. */
export interface ConvexDatabase {
  // As Convex declares them, for tables that only its generated types know.
  query(table: never): unknown;
}

/** The same, as it is called here. */
interface Database {
  query(table: string): {
    withIndex(
      name: string,
      range: (q: { eq(field: string, value: string): unknown; lte(field: string, value: number): unknown }) => unknown,
    ): { collect(): Promise<Row[]>; take(n: number): Promise<Row[]> };
  };
  insert(table: string, fields: State & { id: string; dropAt: number }): Promise<unknown>;
  patch(row: unknown, fields: State & { dropAt: number }): Promise<void>;
  delete(row: unknown): Promise<void>;
}

interface Row extends State {
  readonly _id: unknown;
}

/** Settings of {@link convex}. */
export interface ConvexOptions {
  /** The table's name; default `"tidegate"`. */
  table?: string | undefined;
}

const OPTIONS = { table: STRING };
const NAME = "convex";
/** Rows that one mutation deletes at most. */
const PURGE_MOST = 500;

/**
 * The table of states, for the schema. Its rows are the limit's name and key, the two numbers, and the epoch ms from which
 * {@link purge} deletes the row.
 *
 * ```ts
 * // convex/schema.ts
 * export default defineSchema({ tidegate: stateTable(defineTable, v) });
 * ```
 *
 * Throws an `InputError` if one of the two is something else.
 */
export function stateTable<Text, Num, Table>(
  defineTable: (fields: { id: Text; value: Num; ts: Num; dropAt: Num }) => {
    index(name: "id", fields: ["id"]): { index(name: "dropAt", fields: ["dropAt"]): Table };
  },
  v: { string(): Text; float64(): Num },
): Table {
  if (typeof defineTable !== "function") {
    const rule = "the function defineTable of convex/server";
    throw new InputError("defineTable", rule, defineTable, showInstead(defineTable));
  }
  checkMethods("v", v, ["string", "float64"], "v of convex/values");
  const fields = { id: v.string(), value: v.float64(), ts: v.float64(), dropAt: v.float64() };
  return defineTable(fields).index("id", ["id"]).index("dropAt", ["dropAt"]);
}

/** Returns `db` by shape and the table's name; throws if one of them is wrong. */
function checked(db: ConvexDatabase, options: ConvexOptions, name: string): { database: Database; table: string } {
  checkMethods("db", db, ["query"], "a database, such as a mutation's ctx.db");
  checkTable(name, options, OPTIONS);
  return { database: db as Database, table: options.table ?? "tidegate" };
}

/**
 * Deletes rows whose limits have been full for a minute, at most 500, and returns how many it deleted. Run it in an
 * internal mutation, from a cron job. A full limit needs no row: no decision changes.
 *
 * ```ts
 * // convex/limits.ts; in convex/crons.ts: crons.hourly("full limits", { minuteUTC: 0 }, internal.limits.cleanUp)
 * export const cleanUp = internalMutation((ctx) => purge(ctx.db));
 * ```
 *
 * Throws an `InputError` if an argument is wrong.
 */
export async function purge(db: ConvexDatabase, options: ConvexOptions = {}): Promise<number> {
  const { database, table } = checked(db, options, "purge");
  const full = await database
    .query(table)
    .withIndex("dropAt", (q) => q.lte("dropAt", Date.now()))
    .take(PURGE_MOST);
  for (const { _id } of full) await database.delete(_id);
  return full.length;
}

/**
 * A store over the database of the function that runs.
 *
 * ```ts
 * const configs = { send: { kind: "token bucket", rate: 10, period: MINUTE } } as const;
 *
 * export const send = mutation(async (ctx) => {
 *   const limits = defineLimits(configs, { store: convex(ctx.db) });
 *   await limits.limit("send", { key: userId, throws: true });
 * });
 * ```
 *
 * Calls return promises: await each before the mutation returns. In a query, `check` and `getValue` work. With
 * `throws: true` a denial is a `ConvexError` whose `data` is `{ kind: "RateLimited", name, retryAt, retryAfter }`; it is a
 * `RateLimitError` too. Calls on one limit and key run one after another if they are on the same `ctx.db` object: pass
 * that one to each limiter of a mutation. Parallel calls on different objects may insert several rows under one identity.
 * These are read as one state that lacks what all of them lack; the next write or `reset` deletes the others. Calls have no
 * deadline and no `onStoreError`: an error of the database rejects as a `StoreError`, and the mutation is rolled back.
 * Throws an `InputError` if an argument is wrong.
 */
export function convex(db: ConvexDatabase, options: ConvexOptions = {}): AsyncStore {
  const { database, table } = checked(db, options, NAME);

  // An index of Convex is not unique: there may be several.
  const rowsOf = (id: string): Promise<Row[]> =>
    database
      .query(table)
      .withIndex("id", (q) => q.eq("id", wellFormed(id)))
      .collect();
  const deleteAll = async (rows: readonly Row[]): Promise<void> => {
    for (const { _id } of rows) await database.delete(_id);
  };

  /** In a query `ctx.db` has no methods that write. */
  const checkWritable = (): void => {
    if (typeof database.insert === "function") return;
    throw new InputError("db", "a mutation's ctx.db for a call that writes", db, "a query's ctx.db");
  };

  // The mutation is the transaction.
  const transaction: Transaction = {
    async get(id, join) {
      const state = join(await rowsOf(id));
      return state === null ? null : { value: state.value, ts: state.ts };
    },
    async set(id, { value, ts }, fullAt) {
      checkWritable();
      const [first, ...others] = await rowsOf(id);
      const fields = { value, ts, dropAt: fullAt + SLACK };
      if (first === undefined) await database.insert(table, { id: wellFormed(id), ...fields });
      else await database.patch(first._id, fields);
      await deleteAll(others);
    },
    async delete(id) {
      checkWritable();
      await deleteAll(await rowsOf(id));
    },
  };
  const store = transactional({ name: NAME, transaction: (body) => body(transaction), within: db });
  return { ...store, denied };
}

/** A denial as Convex sends it to the client: a `ConvexError`, which Convex recognizes by this symbol, with `data`. */
function denied(limit: string, decision: Decision): RateLimitError {
  const error = new RateLimitError(limit, decision);
  // Convex has no `undefined`: JSON leaves it out.
  return Object.assign(error, { [Symbol.for("ConvexError")]: true, data: JSON.parse(JSON.stringify(error)) });
}
