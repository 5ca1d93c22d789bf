import type { Decision } from "./decision.ts";
import { OPS, RESERVE } from "./engine/engine.ts";
import { isInputError } from "./errors.ts";
import { fallback } from "./fallback.ts";
import type { Limit } from "./limit.ts";
import type { Call, OnStoreError, Op, SyncStore } from "./store.ts";

/** A store of ours that takes many keys in one call. */
export interface Batch {
  decideMany(limit: Limit, keys: readonly string[], count: number, now: number | undefined): Decision[];
}

/** A store of ours that takes a call without an object for it. */
export interface Fast {
  decideFast(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision;
}

/** A store that has no way to fail: all there is are mistakes of the caller's. */
export interface InMemory {
  readonly cannotFail: true;
}

const OP_OF = Object.keys(OPS) as readonly Op[];

/**
 * A store that answers at once, and what is answered where it throws. There is no deadline: nobody else can be served
 * before it is done.
 */
export function resilientSync(
  store: SyncStore & Partial<Fast & Batch & InMemory>,
  onStoreError: OnStoreError | undefined,
): SyncStore & Partial<Fast & Batch> {
  if (store.cannotFail === true) return store;
  const { one, several } = fallback(onStoreError);

  function attempt<T>(run: () => T, instead: (cause: unknown) => T): T {
    try {
      return run();
    } catch (error) {
      if (isInputError(error)) throw error;
      return instead(error);
    }
  }
  const time = (now: number | undefined): number => Math.floor(now ?? Date.now());
  const take = (limit: Limit, key: string, count: number): Call => ({ op: "take", limit, key, count, reserve: false });

  const guarded: SyncStore & Partial<Fast & Batch> = {
    name: store.name,
    sync: true,
    decide: (call, now) =>
      attempt(
        () => store.decide(call, now),
        (cause) => one(call, time(now), cause),
      ),
    decideAll: (calls, now) =>
      attempt(
        () => store.decideAll(calls, now),
        (cause) => several(calls, time(now), cause),
      ),
    reset: (limit, key) => store.reset(limit, key),
    getValue: (limit, key, now) => store.getValue(limit, key, now),
  };
  if (store.decideFast !== undefined) {
    guarded.decideFast = (limit, key, count, flags, now) => {
      try {
        return (store as Fast).decideFast(limit, key, count, flags, now);
      } catch (error) {
        if (isInputError(error)) throw error;
        const call: Call = { op: OP_OF[flags & 3] as Op, limit, key, count, reserve: (flags & RESERVE) !== 0 };
        return one(call, time(now), error);
      }
    };
  }
  if (store.decideMany !== undefined) {
    guarded.decideMany = (limit, keys, count, now) =>
      attempt(
        () => (store as Batch).decideMany(limit, keys, count, now),
        (cause) => keys.map((key) => one(take(limit, key, count), time(now), cause)),
      );
  }
  return guarded;
}
