import { checkOptions, LIMITER } from "./arguments.ts";
import type { LimiterOptions } from "./call-options.ts";
import { checkFields, checkOnStoreError, checkTimeout } from "./config.ts";
import type { Defined } from "./defined.ts";
import { InputError } from "./errors.ts";
import { Leases } from "./lease/leases.ts";
import { checkLease } from "./lease/options.ts";
import { checkLog } from "./outages.ts";
import { resilient } from "./resilience.ts";
import { type Batch, resilientSync } from "./resilience-sync.ts";
import { MemoryStore } from "./stores/memory.ts";
import type { Store } from "./store.ts";

/** The settings of a limiter, checked, with the store in memory where none is given. */
export function checkLimiter<S extends Store>(options: LimiterOptions<S>): LimiterOptions<S> & { store: S } {
  checkOptions(options, "an object, such as { store }");
  checkFields(options, LIMITER, "defineLimits");
  const { store = new MemoryStore() as Store as S, now, onStoreError, timeout, log } = options;
  checkOnStoreError(onStoreError);
  checkTimeout(timeout);
  checkLog(log);
  if (now !== undefined && typeof now !== "function") throw new InputError("now", "a function that tells ms", now);
  if (typeof store !== "object" || store === null || typeof (store as Partial<Store>).decide !== "function") {
    throw new InputError("store", "a store, such as memory() or redis(client)", store);
  }
  return { store, now, onStoreError, timeout, log };
}

/** The store as it is asked: behind what answers where it fails, and the leases where there are. */
export function askedOf(
  { store, onStoreError, timeout, log }: LimiterOptions<Store> & { store: Store },
  defined: Defined,
  time: () => number | undefined,
): { asked: Store & Partial<Batch>; leases?: Leases } {
  if (store.sync) return { asked: resilientSync(store, { onStoreError, log }) };
  // A transaction of the host's fails or commits as a whole: an error there is the host's to see, not ours to answer for.
  if (store.inTransaction === true) return { asked: store };
  const always = resilient(store, { onStoreError, timeout, log });
  const lending = checkLease(store.lease);
  if (lending === undefined) return { asked: always };
  defined.refuseShards();
  const leases = new Leases(always, lending, time, store.during ?? (() => {}));
  return { asked: leases, leases };
}
