/**
 * State in a Convex table, inside a mutation: what is taken is taken or rolled back with everything else in it.
 *
 * @module
 */
import { checkFields, fieldTable } from "../limit/config.ts";
import type { State } from "../limit/decision.ts";
import { InputError, showInstead } from "../limit/errors.ts";
import type { AsyncStore } from "./contract.ts";
import { wellFormed } from "./record.ts";
import type { Transaction } from "./steps.ts";
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
      range: (q: { eq(field: string, value: string): unknown }) => unknown,
    ): { collect(): Promise<Row[]> };
  };
  insert(table: string, fields: State & { id: string }): Promise<unknown>;
  patch(row: unknown, fields: State): Promise<void>;
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

const OPTIONS = fieldTable("table");
const NAME = "convex";

/**
 * The table of states, for the schema. Its rows are the limit's name and key, and the two numbers.
 *
 * ```ts
 * // convex/schema.ts
 * export default defineSchema({ tidegate: stateTable(defineTable, v) });
 * ```
 */
export function stateTable<Text, Number, Table>(
  defineTable: (fields: { id: Text; value: Number; ts: Number }) => { index(name: "id", fields: ["id"]): Table },
  v: { string(): Text; float64(): Number },
): Table {
  return defineTable({ id: v.string(), value: v.float64(), ts: v.float64() }).index("id", ["id"]);
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
 * In a query, `check` and `getValue` work. Calls on one limit and key run one after another, also where several limiters
 * are on the same `ctx.db` object: pass each limiter of a mutation that one. Calls have no deadline and no
 * `onStoreError`: an error of the database rejects as a `StoreError`, and the mutation is rolled back. Several rows under
 * one identity, which earlier versions could insert, are read as one state that lacks what all of them lack; the next
 * write or `reset` deletes the others. Throws an `InputError` where an argument is wrong.
 */
export function convex(db: ConvexDatabase, options: ConvexOptions = {}): AsyncStore {
  if (typeof db !== "object" || db === null || typeof db.query !== "function") {
    throw new InputError("db", "a database, such as a mutation's ctx.db", db, showInstead(db));
  }
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "convex");
  const { table = "tidegate" } = options;
  if (typeof table !== "string") throw new InputError("table", "a string", table);
  const database = db as unknown as Database;

  // An index of Convex is not unique. The queue of `transactional` keeps this store from inserting a second row; tables
  // that an earlier version wrote may have some.
  const rowsOf = (id: string): Promise<Row[]> =>
    database
      .query(table)
      .withIndex("id", (q) => q.eq("id", wellFormed(id)))
      .collect();
  const deleteAll = async (rows: readonly Row[]): Promise<void> => {
    for (const { _id } of rows) await database.delete(_id);
  };

  // The mutation is the transaction.
  const transaction: Transaction = {
    async get(id, join) {
      const state = join(await rowsOf(id));
      return state === null ? null : { value: state.value, ts: state.ts };
    },
    async set(id, { value, ts }) {
      const [first, ...others] = await rowsOf(id);
      if (first === undefined) await database.insert(table, { id: wellFormed(id), value, ts });
      else await database.patch(first._id, { value, ts });
      await deleteAll(others);
    },
    delete: async (id) => deleteAll(await rowsOf(id)),
  };
  return transactional({ name: NAME, transaction: (body) => body(transaction), within: db });
}
