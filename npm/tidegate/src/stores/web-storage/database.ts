/** States in IndexedDB, where one read-write transaction runs at a time, across all tabs of an origin. */
import type { State } from "../../limit/decision.ts";
import type { Deadline } from "../contract.ts";
import { dropAtOf, readRecord, writeRecord } from "../record.ts";
import type { Transaction } from "../steps.ts";

const STATES = "states";
/** Ms for which a full state is kept, for clocks that are behind. */
const SLACK = 60_000;

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Opens the database, creates it where it is absent, and deletes the states that are full. */
export async function open(indexedDB: IDBFactory, name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STATES);
  const database = await settled(request);
  await sweep(database);
  return database;
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
export async function transact<T>(
  database: IDBDatabase,
  deadline: Deadline,
  body: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const transaction = database.transaction(STATES, "readwrite");
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
        if (deadline !== undefined && performance.now() >= deadline) throw new Error("its deadline has passed");
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
