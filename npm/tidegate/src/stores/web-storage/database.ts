/** States in IndexedDB: a read-write transaction is alone on its origin, whichever tab it is of. */
import type { State } from "../../limit/decision.ts";
import { readRecord, writeRecord } from "../record.ts";
import type { Transaction } from "../transactional.ts";

const STATES = "states";
/** ms that a full state is kept on, for clocks that are behind. */
const SLACK = 60_000;

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Opens it, made where there is none, without the states that are full by now. */
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
      if (isOver(cursor.value, now)) cursor.delete();
      cursor.continue();
    };
  });
}

/** What does not decode stays, to be reported by whoever asks for it. */
function isOver(bytes: unknown, now: number): boolean {
  try {
    return readRecord(bytes as Uint8Array).dropAt <= now;
  } catch {
    return false;
  }
}

/** One atomic step; answers when it is complete. `now` is the time that the states are of. */
export async function transact<T>(
  database: IDBDatabase,
  now: number,
  body: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const transaction = database.transaction(STATES, "readwrite");
  const states = transaction.objectStore(STATES);
  const complete = new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
  });
  // Whoever awaits it hears of it; until then a failure is nobody's.
  complete.catch(() => {});
  try {
    const result = await body({
      async get(id): Promise<State | null> {
        const bytes: unknown = await settled(states.get(id));
        return bytes === undefined ? null : readRecord(bytes as Uint8Array);
      },
      set(id, state, fullAt): void {
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
