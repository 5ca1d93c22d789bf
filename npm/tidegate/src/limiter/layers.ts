/** Where a limiter puts a store that can fail behind its layers: resilience.ts, then lease/leases.ts. */
import type { Shortcuts, Store } from "../stores/contract.ts";
import { Leases } from "./lease/leases.ts";
import { checkLease } from "./lease/options.ts";
import { ResilientStore, type Settings } from "./resilience.ts";
import { resilientSync } from "./resilience-sync.ts";

/** A store that always decides, on leased tokens if it leases. */
export interface Layered {
  readonly store: Store & Shortcuts;
  readonly leases?: Leases;
}

/**
 * What a limiter puts around a store that can fail: deadlines, breakers and `onStoreError`, and leases. Every store of this
 * package that returns promises brings it, so that a page in memory does not download it.
 */
export function layers(store: Store, settings: Settings, time: () => number | undefined): Layered {
  if (store.sync) return { store: resilientSync(store, settings) };
  const layered = new ResilientStore(store, settings);
  const leaseSettings = checkLease(store.lease);
  if (leaseSettings === undefined) return { store: layered };
  const during = (work: Promise<unknown>): void => store.during?.(work);
  const leases = new Leases({ resilient: layered, settings: leaseSettings, time, during });
  return { store: leases, leases };
}
