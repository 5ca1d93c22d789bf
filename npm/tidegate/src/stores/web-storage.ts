/**
 * State in the browser, shared by all tabs and workers of an origin; it survives reloads.
 *
 * @module
 */
import { layers } from "../limiter/layers.ts";
import { checkTable, FUNCTION, STRING } from "../limit/checks.ts";
import type { State } from "../limit/decision.ts";
import { messageOf } from "../limit/errors.ts";
import { notify } from "../limit/notify.ts";
import type { AsyncStore, Deadline, Store } from "./contract.ts";
import { memory, type MemoryStore } from "./memory.ts";
import { dropAtOf, readRecord, writeRecord } from "./record.ts";
import { connectedBy } from "./connecting.ts";
import { SLACK, Steps, storeOf, type Transaction } from "./steps.ts";

/** Settings of {@link webStorage}. */
export interface WebStorageOptions {
  /** The database's name; default `"tidegate"`. Limiters with the same one share their states. */
  name?: string | undefined;
  /**
   * Called once if there is no IndexedDB, or none that opens (some private windows, sandboxed frames): limits are
   * then this tab's own, in memory. Default: `console.warn`.
   */
  onFallback?: ((cause: Error) => void) | undefined;
}

const OPTIONS = { name: STRING, onFallback: FUNCTION };
const NAME = "web-storage";
/** The browser runs one transaction of all tabs at a time. */
const LATE = "no answer in time: another tab may hold up the database, by a long transaction or while it deletes it";

/**
 * A store in IndexedDB: one transaction a call, `limitAll` included, and no tab takes what another has taken.
 *
 * ```ts
 * const limits = defineLimits({ save: { kind: "token bucket", rate: 10, period: MINUTE } }, { store: webStorage() });
 * if (!(await limits.limit("save")).ok) showHint();
 * ```
 *
 * It throttles a cooperating client: its user can delete what the browser stores. A limit with `shards` is one state. Calls reject with
 * a `StoreError` if the database fails. Throws an `InputError` if an option is wrong.
 */
export function webStorage(options: WebStorageOptions = {}): AsyncStore {
  checkTable("webStorage", options, OPTIONS);
  const { name = "tidegate", onFallback = (cause: Error) => console.warn(cause.message) } = options;
  let database: Promise<IDBDatabase | undefined> | undefined;
  let local: MemoryStore | undefined;
  /** Whether the database opened once: if it does not later, as on a full disk, the call fails, and the next tries again. */
  let wasOpen = false;

  async function opened(): Promise<IDBDatabase | undefined> {
    try {
      // Absent outside browsers; in some sandboxes reading the property throws.
      const { indexedDB } = globalThis as { indexedDB?: IDBFactory };
      if (indexedDB === undefined) throw new Error("there is no IndexedDB");
      const found = await open(indexedDB, name);
      let isOpen = true;
      const forget = (): void => {
        found.close();
        isOpen = false;
        database = undefined;
      };
      // It is deleted or replaced: the next call opens it again. Before the sweep, which that would wait for otherwise.
      found.onversionchange = forget;
      await sweep(found);
      wasOpen = true;
      return isOpen ? found : opening();
    } catch (cause) {
      if (wasOpen) throw cause;
      const message = `tidegate: limits are this tab's own, in memory: ${messageOf(cause)}`;
      notify(() => onFallback(new Error(message, { cause })));
      return undefined;
    }
  }

  const opening = (): Promise<IDBDatabase | undefined> => {
    if (database === undefined) {
      const found = opened();
      database = found;
      found.catch(() => {
        if (database === found) database = undefined;
      });
    }
    return database;
  };

  const stored = storeOf(NAME, async (_targets, now = Date.now(), deadline, body) => {
    const begin = async () => ((await opening()) as IDBDatabase).transaction(STATES, "readwrite");
    const before = database;
    // Safari may close a database without an event. Nothing was taken: it is opened again.
    const transaction = await begin().catch(() => {
      if (database === before) database = undefined;
      return begin();
    });
    return transact(transaction, deadline, (states) => body(new Steps(states, NAME, now)));
  });
  async function chosen(deadline: Deadline): Promise<Store> {
    if (deadline !== undefined) deadline.why = new Error(LATE);
    // If it fails to open again, `stored` rejects with the reason.
    if ((await opening().catch(() => true)) !== undefined) return stored;
    local ??= memory();
    return local;
  }

  // A browser's first access to its disk may take longer than a call's deadline.
  return connectedBy(opening, {
    name: NAME,
    sync: false,
    layers,
    decide: async (...call) => (await chosen(call[2])).decide(...call),
    decideAll: async (...calls) => (await chosen(calls[2])).decideAll(...calls),
    reset: async (...target) => (await chosen(target[2])).reset(...target),
    getValue: async (...target) => (await chosen(target[3])).getValue(...target),
  });
}

const STATES = "states";

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Opens the database, and creates it if it is absent. */
function open(indexedDB: IDBFactory, name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STATES);
  return settled(request);
}

function sweep(database: IDBDatabase): Promise<void> {
  const now = Date.now();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STATES, "readwrite");
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
    const cursors = transaction.objectStore(STATES).openCursor();
    cursors.onsuccess = () => {
      const cursor = cursors.result;
      if (cursor === null) return;
      if (dropAtOf(cursor.value) <= now) cursor.delete();
      cursor.continue();
    };
  });
}

/** One atomic step; resolves when it is complete. One that begins after its deadline takes nothing. */
async function transact<T>(
  transaction: IDBTransaction,
  deadline: Deadline,
  body: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const states = transaction.objectStore(STATES);
  const complete = new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
  });
  // Awaited below, unless the body fails first.
  complete.catch(() => {});
  try {
    const result = await body({
      async get(id): Promise<State | null> {
        const bytes: unknown = await settled(states.get(id));
        if (deadline !== undefined && performance.now() >= deadline.at) throw new Error("its deadline has passed");
        return bytes === undefined ? null : readRecord(bytes).state;
      },
      set(id, state, fullAt, now): void {
        states.put(writeRecord(state, Date.now() + Math.max(fullAt - now, 0) + SLACK), id);
      },
      delete: (id) => void states.delete(id),
    });
    await complete;
    return result;
  } catch (error) {
    try {
      transaction.abort();
    } catch {
      // It has ended already.
    }
    throw error;
  }
}
