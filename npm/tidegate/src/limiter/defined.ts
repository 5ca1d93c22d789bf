import { type Config, checkFields, checkOnStoreError, checkTimeout } from "../limit/config.ts";
import { InputError } from "../limit/errors.ts";
import { limitOf } from "../limit/evaluate.ts";
import { Limit } from "../limit/limit.ts";
import type { Store } from "../stores/contract.ts";
import { MemoryStore } from "../stores/memory.ts";
import { checkOptions, LIMITER, type LimiterOptions, refuseShards, unknownName } from "./options.ts";
import { Leases } from "./lease/leases.ts";
import { checkLease } from "./lease/options.ts";
import { checkLog } from "./outages.ts";
import { type Batch, resilientSync } from "./resilience-sync.ts";
import { resilient } from "./resilience.ts";

/** The limits of a limiter, by name. */
export class Defined {
  readonly names: readonly string[];
  readonly #limits: ReadonlyMap<string, Limit>;
  // Before the first: what equals nothing, so that no name is taken for known, `undefined` neither.
  #lastName: unknown = Number.NaN;
  #last: Limit | undefined;

  constructor(configs: Readonly<Record<string, Config>>) {
    if (typeof configs !== "object" || configs === null) {
      throw new InputError("limits", "an object of limits by name", configs);
    }
    this.names = Object.freeze(Object.keys(configs));
    this.#limits = new Map(this.names.map((name) => [name, define(name, configs[name] as Config)]));
  }

  /** Leases take no limits of several shards. */
  refuseShards(): void {
    for (const limit of this.#limits.values()) refuseShards(limit);
  }

  /** The limit of this name, or the one that this config is. */
  of(name: string, config: Config | undefined): Limit {
    if (config !== undefined) return limitOf(name, config);
    if (name === this.#lastName) return this.#last as Limit;
    const limit = this.#limits.get(name);
    if (limit === undefined) throw unknownName(name, this.names);
    this.#lastName = name;
    this.#last = limit;
    return limit;
  }
}

function define(name: string, config: Config): Limit {
  try {
    return new Limit(name, config);
  } catch (error) {
    if (error instanceof InputError) error.message += ` (in the limit ${JSON.stringify(name)})`;
    throw error;
  }
}

/** The limit's config, complete: what `project` needs to say what the store would. */
export function configOf(limit: Limit, key: string | undefined): Config {
  const { kind, rate, period, capacity, maxReserved, shards } = limit.policy;
  const common = { rate, period, capacity, ...(maxReserved === undefined ? {} : { maxReserved }), shards };
  return kind === "token bucket" ? { kind, ...common } : { kind, ...common, start: limit.start(key) };
}

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
