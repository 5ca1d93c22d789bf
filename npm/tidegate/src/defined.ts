import { refuseShards, unknownName } from "./arguments.ts";
import type { Config } from "./config.ts";
import { InputError } from "./errors.ts";
import { limitOf } from "./evaluate.ts";
import { Limit } from "./limit.ts";

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
