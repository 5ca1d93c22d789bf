/**
 * Synchronous stores that always decide: a decision in the place of one that throws. There is neither deadline nor
 * breaker: nothing else runs until the store returns.
 */
import { RESERVE } from "../engine/generated/wire.ts";
import { isInputError } from "../limit/errors.ts";
import { opOf } from "../limit/evaluator.ts";
import type { Call, Shortcuts, SyncStore } from "../stores/contract.ts";
import { Fallback } from "./fallback.ts";
import { Outages } from "./outages.ts";
import type { Settings } from "./resilience.ts";

/** The only node of a synchronous store. */
const NODE = "";

export function resilientSync(
  store: SyncStore & Shortcuts,
  settings: Omit<Settings, "timeout">,
): SyncStore & Shortcuts {
  const fallback = new Fallback(settings.onStoreError, settings.denied);
  const outages = new Outages(store.name, settings.log);

  /** Counts and logs a failure. A mistake of the caller's is thrown on. */
  function failed(error: unknown, targets: readonly Pick<Call, "limit">[]): void {
    if (isInputError(error)) throw error;
    outages.failed(NODE, error, fallback.insteadOf(targets));
  }

  function attempt<T>(targets: readonly Pick<Call, "limit">[], run: () => T, without?: (cause: unknown) => T): T {
    try {
      const result = run();
      outages.succeeded(NODE);
      return result;
    } catch (error) {
      failed(error, targets);
      if (without === undefined) throw error;
      return without(error);
    }
  }

  const guarded: SyncStore & Shortcuts = {
    name: store.name,
    sync: true,
    decide: (call, now) =>
      attempt(
        [call],
        () => store.decide(call, now),
        (cause) => fallback.one(call, now, cause),
      ),
    decideAll: (calls, now) =>
      attempt(
        calls,
        () => store.decideAll(calls, now),
        (cause) => fallback.several(calls, now, cause),
      ),
    reset: (limit, key) => attempt([{ limit }], () => store.reset(limit, key)),
    getValue: (limit, key, now) => attempt([{ limit }], () => store.getValue(limit, key, now)),
  };
  if (store.decideFast !== undefined) {
    // Not by `attempt`: two closures per decision.
    guarded.decideFast = (limit, key, count, flags, now) => {
      try {
        const decision = (store as Required<Shortcuts>).decideFast(limit, key, count, flags, now);
        outages.succeeded(NODE);
        return decision;
      } catch (error) {
        failed(error, [{ limit }]);
        const call: Call = { op: opOf(flags), limit, key, count, reserve: (flags & RESERVE) !== 0 };
        return fallback.one(call, now, error);
      }
    };
  }
  if (store.decideMany !== undefined) {
    guarded.decideMany = (limit, keys, count, now) =>
      attempt(
        [{ limit }],
        () => (store as Required<Shortcuts>).decideMany(limit, keys, count, now),
        (cause) => keys.map((key) => fallback.one({ op: "take", limit, key, count, reserve: false }, now, cause)),
      );
  }
  return guarded;
}
