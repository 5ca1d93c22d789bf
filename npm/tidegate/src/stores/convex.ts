/**
 * State in a Convex table, inside a mutation: what is taken is taken or rolled back with everything else in it.
 *
 * @module
 */
import { checkFields, fieldTable } from "../config.ts";
import type { State } from "../decision.ts";
import { InputError, showInstead } from "../errors.ts";
import type { AsyncStore } from "../store.ts";
import { wellFormed } from "./record.ts";
import { type Transaction, transactional } from "./transactional.ts";

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
    ): { unique(): Promise<Row | null> };
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
 * In a query, `check` and `getValue` work. Calls have no deadline and no `onStoreError`: an error of the database
 * rejects as a `StoreError`, and the mutation is rolled back. Throws an `InputError` where an argument is wrong.
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

  const row = (id: string): Promise<Row | null> =>
    database
      .query(table)
      .withIndex("id", (q) => q.eq("id", wellFormed(id)))
      .unique();

  // The mutation is the transaction.
  const transaction: Transaction = {
    async get(id) {
      const found = await row(id);
      return found === null ? null : { value: found.value, ts: found.ts };
    },
    async set(id, { value, ts }) {
      const found = await row(id);
      if (found === null) await database.insert(table, { id: wellFormed(id), value, ts });
      else await database.patch(found._id, { value, ts });
    },
    async delete(id) {
      const found = await row(id);
      if (found !== null) await database.delete(found._id);
    },
  };
  return { ...transactional({ name: NAME, transaction: (body) => body(transaction) }), inTransaction: true };
}
