import { type Config, FIRST_REQUEST, type Start } from "./config.ts";

/** The most configs that are cached. */
const MOST = 1000;

const isPlain = (value: unknown): boolean =>
  value === undefined || typeof value === "number" || value === FIRST_REQUEST;

/** A cache of the limits of configs that callers pass with each call. */
export interface Cached<L> {
  /** The limit of a config; an equal config has the same one. */
  of(name: string, config: Config): L;
  /** A frozen copy of a config, whose limit of this name is found by the object, without a look at its fields. */
  prepared(name: string, config: Config): Config;
}

export function cached<L extends { readonly name: string }>(make: (name: string, config: Config) => L): Cached<L> {
  const limits = new Map<string, L>();
  const made = new WeakMap<Config, L>();
  return {
    of(name, config) {
      const known = made.get(config);
      if (known !== undefined && known.name === name) return known;
      if (typeof config !== "object" || config === null) return make(name, config);
      // Read once: getters may return something else the next time.
      const read = { ...config } as Config & { start?: Start };
      const { kind, rate, period, capacity, maxReserved, start, shards } = read;
      const numbers = [rate, period, capacity, maxReserved, start, shards];
      const count = 1 + numbers.filter((number) => number !== undefined).length;
      const plain = typeof name === "string" && typeof kind === "string" && numbers.every(isPlain);
      if (!plain || Object.keys(read).length !== count) return make(name, read);
      const id = `${name}|${kind}|${numbers.join("|")}`;
      let limit = limits.get(id);
      if (limit === undefined) {
        limit = make(name, read);
        if (limits.size >= MOST) limits.clear();
        limits.set(id, limit);
      }
      return limit;
    },
    prepared(name, config) {
      const frozen = Object.freeze({ ...config });
      made.set(frozen, make(name, frozen));
      return frozen;
    },
  };
}
