import type { Decision } from "../limit/decision.ts";
import { OPS, RESERVE } from "../engine/generated/wire.ts";
import { isInputError, isStoreError } from "../limit/errors.ts";
import { fallback } from "./fallback.ts";
import type { Limit } from "../limit/limit.ts";
import { checkLog, Outages } from "./outages.ts";
import type { Resilience } from "./resilience.ts";
import type { Call, Op, SyncStore } from "../stores/contract.ts";

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
  options: Pick<Resilience, "onStoreError" | "log">,
): SyncStore & Partial<Fast & Batch> {
  if (store.cannotFail === true) return store;
  const { one, several, insteadOf } = fallback(options.onStoreError);
  const outages = new Outages(store.name, checkLog(options.log));

  const succeeded = (): void => {
    if (!outages.none) outages.succeeded("", performance.now());
  };
  /** Throws a mistake of the caller's on, and counts anything else. */
  function failed(limit: Limit | undefined, error: unknown): void {
    if (isInputError(error)) throw error;
    const now = performance.now();
    if (isStoreError(error) && error.scope === "key") outages.keyFailed("", now, error, insteadOf(limit));
    else outages.failed("", now, error, insteadOf(limit));
  }
  function attempt<T>(limit: Limit | undefined, run: () => T, instead?: (cause: unknown) => T): T {
    try {
      const answer = run();
      succeeded();
      return answer;
    } catch (error) {
      failed(limit, error);
      if (instead === undefined) throw error;
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
        call.limit,
        () => store.decide(call, now),
        (cause) => one(call, time(now), cause),
      ),
    decideAll: (calls, now) =>
      attempt(
        calls[0]?.limit,
        () => store.decideAll(calls, now),
        (cause) => several(calls, time(now), cause),
      ),
    reset: (limit, key) => attempt(limit, () => store.reset(limit, key)),
    getValue: (limit, key, now) => attempt(limit, () => store.getValue(limit, key, now)),
  };
  if (store.decideFast !== undefined) {
    guarded.decideFast = (limit, key, count, flags, now) => {
      try {
        const decision = (store as Fast).decideFast(limit, key, count, flags, now);
        succeeded();
        return decision;
      } catch (error) {
        failed(limit, error);
        const call: Call = { op: OP_OF[flags & 3] as Op, limit, key, count, reserve: (flags & RESERVE) !== 0 };
        return one(call, time(now), error);
      }
    };
  }
  if (store.decideMany !== undefined) {
    guarded.decideMany = (limit, keys, count, now) =>
      attempt(
        limit,
        () => (store as Batch).decideMany(limit, keys, count, now),
        (cause) => keys.map((key) => one(take(limit, key, count), time(now), cause)),
      );
  }
  return guarded;
}
