/**
 * State in a MongoDB collection: exact among all processes, by each process's clock.
 *
 * @module
 */
import type { AnyBulkWriteOperation, ClientSession, Collection, MongoClient } from "mongodb";
import { decodeText, encodeText, NotAState } from "../limit/codec.ts";
import { checkMethods, checkTable, textThat } from "../limit/checks.ts";
import { InputError, messageOf, showClient } from "../limit/errors.ts";
import type { AsyncStore } from "./contract.ts";
import { wellFormed } from "./record.ts";
import { connectedBy } from "./connecting.ts";
import { KeyError } from "./failure.ts";
import type { Change } from "./swap/database.ts";
import { swapStore } from "./swap.ts";

/** What the store uses of a `MongoClient` of the driver `mongodb`, by shape. */
export interface MongoClientLike {
  db(name?: string): unknown;
  startSession(options?: never): unknown;
}

/** Settings of {@link mongodb}. */
export interface MongoDbOptions {
  /** The database's name; default that of the client's connection string. */
  database?: string | undefined;
  /** The collection's name; default `"tidegate"`. Stores with the same one share their states. */
  collection?: string | undefined;
}

/** A document. A `state` of `null` is none: the key was reset. */
interface Row {
  _id: string;
  state: string | null;
  dropAt: Date;
}
/** A row's `state` as it was read; `undefined` if there is no row. */
type Version = Row["state"] | undefined;

const A_NAME = textThat("a name");
const OPTIONS = { database: A_NAME, collection: A_NAME };
/** The end of the year 9999: the latest date that every driver and tool reads. */
const LAST = 253_402_300_799_999;
const DUPLICATE_KEY = 11_000;
const WRITE_CONFLICT = 112;
const NO_TRANSACTIONS = 20;
const OUT_OF_TIME = 50;
/** No connection of the pool was free within `waitQueueTimeoutMS`: nothing was sent. The name of a write's error is another. */
const POOL_IS_FULL = /^Timed out while checking out a connection/;
/**
 * A write waits for a transaction that has written the document, such as that of a process that ended in the middle. Or for
 * the majority: with an arbiter, one lost member with data is enough.
 */
const LOCKED = new KeyError(
  "a write on this key had no reply in time; a transaction may have locked its document, or too few members of the replica set work",
  false,
);
/** What was read and what is written must survive the loss of a primary. */
const SAFE = { readPreference: "primary", writeConcern: { w: "majority" } } as const;

/**
 * A store in a MongoDB collection. A batch of calls on a key is a `find` on the primary and, if something is taken, a
 * conditional `update` or an `insert`. The first call creates the collection and its TTL index.
 *
 * ```ts
 * import { MongoClient } from "mongodb";
 *
 * const store = mongodb(await new MongoClient("mongodb://localhost:27017/app").connect());
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * `limitAll` on several limits or keys is a transaction of MongoDB, which requires a replica set or a sharded cluster. On a
 * standalone server it rejects with an `InputError`, before anything is taken. A limit with `shards` is one document. A
 * step that lost against another process is repeated until the call's deadline, which the server is sent as well. Calls
 * reject with a `StoreError` if the database fails. Throws an `InputError` if an argument is wrong.
 */
export function mongodb(client: MongoClientLike, options: MongoDbOptions = {}): AsyncStore {
  const expects = "a client of the driver mongodb: new MongoClient(url)";
  checkMethods("client", client, ["db", "startSession"], expects, shownOf);
  checkTable("mongodb", options, OPTIONS);
  const { database, collection = "tidegate" } = options;
  const driver = client as MongoClient;
  let created: Promise<Collection<Row>> | undefined;
  /** The collection with its index, created once; a failure is not kept. */
  function ready(): Promise<Collection<Row>> {
    const rows = driver.db(database).collection<Row>(collection, { ...SAFE, raw: false });
    // All calls wait for it, so it does not wait for the majority, without which reads work.
    const indexed = driver.db(database).collection(collection, { writeConcern: { w: 1 } });
    const index = () => indexed.createIndex({ dropAt: 1 }, { expireAfterSeconds: 0 });
    // After a first connection that failed, the driver refuses every operation until `connect` is called. A client that
    // was closed, which has no topology, stays closed.
    const connected = async (error: unknown) => {
      const { topology } = driver as { topology?: unknown };
      if (topology === undefined || Object(error).name !== "MongoTopologyClosedError") throw error;
      await driver.connect();
      return index();
    };
    created ??= index()
      .catch(connected)
      .then(
        () => rows,
        (error: unknown) => {
          created = undefined;
          throw error;
        },
      );
    return created;
  }

  /** Runs `body` in a transaction, which is aborted if the result is `false`. */
  async function inTransaction<T>(until: number, body: (within: Within) => Promise<T>): Promise<T> {
    const session = driver.startSession();
    try {
      const within = before(until);
      session.startTransaction({ ...SAFE, readConcern: { level: "snapshot" }, maxCommitTimeMS: within.maxTimeMS });
      const result = await body({ session, ...within });
      if (result !== false) await session.commitTransaction();
      return result;
    } catch (error) {
      if ((error as { code?: unknown }).code !== NO_TRANSACTIONS) throw error;
      const rule = "on one limit and key: this MongoDB server is no replica set, and has no transactions";
      throw new InputError("requests", rule, undefined, "several");
    } finally {
      // Aborts a transaction that is open.
      await session.endSession();
    }
  }

  const store = swapStore<Version>({
    name: "mongodb",
    async read(ids, until) {
      const rows = await ready();
      const find = (within: Within) => rows.find({ _id: { $in: ids.map(wellFormed) } }, within).toArray();
      const found = await (ids.length === 1 ? find(before(until)) : inTransaction(until, find));
      const byId = new Map(found.map((row) => [row._id, row]));
      return ids.map((id) => {
        const row = byId.get(wellFormed(id));
        // A row without the field is corrupt, and not absent. A filter takes it for one with `null`.
        const value = row?.state === undefined ? row : (row.state ?? undefined);
        return { value, version: row && (row.state ?? null) };
      });
    },
    decode(value) {
      if (typeof value === "string") return decodeText(value);
      throw new NotAState(`the field \`state\` must be a string; got ${typeof value}`);
    },
    async swap(changes, { until }) {
      const rows = await ready();
      const operations = changes.map(operationOf);
      const updates = operations.filter((operation) => "updateOne" in operation);
      const inserts = operations.filter((operation) => "insertOne" in operation);
      // A command is sent for each group of one kind. An insert that finds a document is an error.
      const all = async (within: Within): Promise<boolean> => {
        const { matchedCount, upsertedCount } = await rows.bulkWrite([...inserts, ...updates], within);
        return matchedCount + upsertedCount === updates.length;
      };
      const written = changes.length === 1 ? all(before(until)) : inTransaction(until, all);
      return written.catch((error: unknown) => {
        throw isOutOfTime(error) ? LOCKED : error;
      });
    },
    unanswered: {
      get read() {
        return unreachable(driver);
      },
      write: LOCKED,
    },
    busy(error) {
      const { code, errorLabels } = Object(error) as { code?: unknown; errorLabels?: unknown };
      if (POOL_IS_FULL.test(messageOf(error))) return "database";
      if (code === DUPLICATE_KEY || code === WRITE_CONFLICT) return "entries";
      // Also if the connection ends inside a transaction.
      return Array.isArray(errorLabels) && errorLabels.includes("TransientTransactionError") ? "database" : undefined;
    },
  });
  return connectedBy(ready, store);
}

/** Whether the server, or the client by `socketTimeoutMS`, has ended what took too long. */
function isOutOfTime(error: unknown): boolean {
  const { name, code } = Object(error) as { name?: unknown; code?: unknown };
  return name === "MongoNetworkTimeoutError" || code === OUT_OF_TIME;
}

/** Why none of the client's servers answers, which the driver keeps to itself while it waits for one; `undefined`: one may. */
function unreachable(client: object): Error | undefined {
  const { topology } = client as { topology?: { description?: { servers?: Map<string, { error?: unknown }> } } };
  const [first, ...others] = [...(topology?.description?.servers?.values() ?? [])].map(({ error }) => error);
  if (!first || !others.every(Boolean)) return undefined;
  return new Error(`no server answers: ${messageOf(first)}`, { cause: first });
}

/** What is passed instead of a client. */
function shownOf(client: unknown): string {
  const { databaseName, dbName, getClient, model } = Object(client) as Record<string, unknown>;
  if (typeof (getClient ?? model) === "function") return "a part of Mongoose; pass mongoose.connection.getClient()";
  if (dbName === undefined && databaseName === undefined) return showClient(client);
  return "a part of one; pass the client, and the names as `database` and `collection`";
}

/** Options of one operation. */
interface Within {
  readonly maxTimeMS: number;
  readonly session?: ClientSession;
}

/** How long the server may work on an operation. 0 would be forever. */
const before = (until: number): Within => ({ maxTimeMS: Math.max(Math.ceil(until - performance.now()), 1) });

/** The write of one row, which is as it was seen if the write inserts it or finds it. */
function operationOf({ id, seen, write }: Change<Version>): AnyBulkWriteOperation<Row> {
  const _id = wellFormed(id);
  const version = seen?.version;
  // A transaction compares what it only read by a write, too: two that each write what the other one read would both
  // commit. A row that is as it was counts as no write, so a field changes.
  if (write === undefined && version !== undefined) {
    return { updateOne: { filter: { _id, state: { $eq: version } }, update: { $inc: { touched: 1 } as never } } };
  }
  const { state = null, dropIn = 0 } = write ?? {};
  const dropAt = new Date(state === null ? 0 : Math.min(Date.now() + dropIn, LAST));
  const row = { state: state && encodeText(state), dropAt };
  // If another process inserted it first, that is a duplicate key.
  if (seen !== undefined && version === undefined) return { insertOne: { document: { _id, ...row } } };
  const filter = { _id, ...(version !== undefined && { state: { $eq: version } }) };
  return { updateOne: { filter, update: { $set: row }, upsert: seen === undefined } };
}
