/**
 * State in the browser, shared by all tabs and workers of an origin; it survives reloads.
 *
 * @module
 */
import { checkFields, fieldTable } from "../limit/config.ts";
import { InputError } from "../limit/errors.ts";
import type { AsyncStore } from "./contract.ts";
import { memory } from "./memory.ts";
import { transactional } from "./transactional.ts";
import { open, transact } from "./web-storage/database.ts";

/** Settings of {@link webStorage}. */
export interface WebStorageOptions {
  /** The database's name; default `"tidegate"`. Limiters with the same one share their states. */
  name?: string | undefined;
  /**
   * Called once where there is no IndexedDB, or none that opens (some private windows, sandboxed frames): limits are
   * then this tab's own, in memory. Default: `console.warn`.
   */
  onFallback?: ((cause: Error) => void) | undefined;
}

const OPTIONS = fieldTable("name", "onFallback");
const NAME = "web-storage";

/**
 * A store in IndexedDB: one transaction a call, `limitAll` included, and no tab takes what another has taken.
 *
 * ```ts
 * const limits = defineLimits({ save: { kind: "token bucket", rate: 10, period: MINUTE } }, { store: webStorage() });
 * if (!(await limits.limit("save")).ok) showHint();
 * ```
 *
 * It throttles a client that plays along: whoever sits before the browser can delete what it stores. Calls reject with
 * a `StoreError` where the database fails. Throws an `InputError` where an option is wrong.
 */
export function webStorage(options: WebStorageOptions = {}): AsyncStore {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "webStorage");
  const { name = "tidegate", onFallback = (cause: Error) => console.warn(cause.message) } = options;
  if (typeof name !== "string") throw new InputError("name", "a string", name);
  if (typeof onFallback !== "function") throw new InputError("onFallback", "a function", onFallback);
  let database: Promise<IDBDatabase | undefined> | undefined;
  let local: AsyncStore | undefined;

  async function opened(): Promise<IDBDatabase | undefined> {
    try {
      // Absent outside browsers; in some sandboxes asking for it throws.
      const { indexedDB } = globalThis as { indexedDB?: IDBFactory };
      if (indexedDB === undefined) throw new Error("there is no IndexedDB");
      const found = await open(indexedDB, name);
      const forget = (): void => {
        found.close();
        database = undefined;
      };
      // Somebody deletes or replaces it; the next call opens it anew.
      found.onversionchange = forget;
      found.onclose = forget;
      return found;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      onFallback(new Error(`tidegate: limits are this tab's own, in memory: ${why}`, { cause }));
      return undefined;
    }
  }

  /** The step on the database, or in memory where there is none. */
  async function step<T>(passed: number | undefined, body: (store: AsyncStore, now: number) => Promise<T>): Promise<T> {
    database ??= opened();
    const found = await database;
    const now = passed ?? Date.now();
    if (found === undefined) {
      local ??= later();
      return body(local, now);
    }
    return body(transactional({ name: NAME, transaction: (work) => transact(found, now, work) }), now);
  }

  return {
    name: NAME,
    sync: false,
    decide: (call, now) => step(now, (store, at) => store.decide(call, at)),
    decideAll: (calls, now) => step(now, (store, at) => store.decideAll(calls, at)),
    reset: (limit, key) => step(undefined, (store) => store.reset(limit, key)),
    getValue: (limit, key, now) => step(now, (store, at) => store.getValue(limit, key, at)),
  };
}

/** The in-memory store, answering with promises. */
function later(): AsyncStore {
  const store = memory();
  return {
    name: NAME,
    sync: false,
    decide: async (call, now) => store.decide(call, now),
    decideAll: async (calls, now) => store.decideAll(calls, now),
    reset: async (limit, key) => store.reset(limit, key),
    getValue: async (limit, key, now) => store.getValue(limit, key, now),
  };
}
