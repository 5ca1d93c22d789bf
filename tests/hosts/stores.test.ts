/** The stores that need no server, through the store suite. */
import { describe, test } from "vitest";
import { memory, type State } from "../../npm/tidegate/src/index.ts";
import { type AsyncStore, type Store, type Transaction, transactional } from "../../npm/tidegate/src/stores/index.ts";
import { storeSuite } from "../../npm/tidegate/src/testing/index.ts";
import { vectors } from "../stores/vectors.ts";

describe("memory", () => storeSuite({ test, describe, create: () => memory(), vectors }));

/** Each call waits for another number of turns. */
function uneven(): () => Promise<void> {
  let calls = 0;
  return async () => {
    for (let i = calls++ % 5; i >= 0; i--) await Promise.resolve();
  };
}

/** The memory store behind promises, each call after another number of turns. */
function later(): AsyncStore {
  const store = memory();
  const turns = uneven();
  return {
    name: "later",
    sync: false,
    decide: async (call, now) => turns().then(() => store.decide(call, now)),
    decideAll: async (calls, now) => turns().then(() => store.decideAll(calls, now)),
    reset: async (limit, key) => turns().then(() => store.reset(limit, key)),
    getValue: async (limit, key, now) => turns().then(() => store.getValue(limit, key, now)),
  };
}

describe("memory, asynchronous", () => storeSuite({ test, describe, create: later, vectors }));

/** States in a Map behind optimistic transactions: a transaction whose reads another one has written runs again. */
class Rows {
  readonly states = new Map<string, State>();
  readonly #versions = new Map<string, number>();
  conflicts = 0;

  async transaction<T>(body: (tx: Transaction) => Promise<T>): Promise<T> {
    for (;;) {
      const read = new Map<string, number>();
      const writes = new Map<string, State | null>();
      const look = (id: string) => read.set(id, read.get(id) ?? this.#versions.get(id) ?? 0);
      const result = await body({
        get: async (id) => {
          look(id);
          const state = writes.has(id) ? (writes.get(id) ?? null) : (this.states.get(id) ?? null);
          await Promise.resolve();
          return state;
        },
        set: (id, state) => {
          look(id);
          writes.set(id, state);
        },
        delete: (id) => {
          look(id);
          writes.set(id, null);
        },
      });
      if ([...read].some(([id, version]) => version !== (this.#versions.get(id) ?? 0))) {
        this.conflicts++;
        continue;
      }
      for (const [id, state] of writes) {
        this.#versions.set(id, (this.#versions.get(id) ?? 0) + 1);
        if (state === null) this.states.delete(id);
        else this.states.set(id, state);
      }
      return result;
    }
  }
}

/** States in a Map, as one transaction that all calls share: only the store isolates them. */
function shared(): Transaction {
  const states = new Map<string, State>();
  const turns = uneven();
  return {
    get: (id) => turns().then(() => states.get(id) ?? null),
    set: (id, state) => turns().then(() => void states.set(id, state)),
    delete: (id) => turns().then(() => void states.delete(id)),
  };
}

const APART = "each shard has a row of its own";

describe("transactional, in one transaction that all calls share", () =>
  storeSuite({
    test,
    describe,
    vectors,
    shardsApart: APART,
    create: () => {
      const tx = shared();
      return transactional({ name: "tx", transaction: (body) => body(tx), within: tx });
    },
  }));

const rows = new WeakMap<Store, Rows>();

describe("transactional, over a Map with conflicts", () =>
  storeSuite({
    test,
    describe,
    vectors,
    shardsApart: APART,
    create: () => {
      const kept = new Rows();
      const store = transactional({ name: "rows", transaction: (body) => kept.transaction(body) });
      rows.set(store, kept);
      return store;
    },
    stored: (store) => (id) => rows.get(store)?.states.get(id) ?? null,
  }));
