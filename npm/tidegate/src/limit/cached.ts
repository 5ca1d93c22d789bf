/** The limits of configs that come with calls, so that each call need not check its own. */
import { type Config, FIRST_REQUEST, type Start } from "./config.ts";

/** The most configs that are cached. */
const MOST = 1000;

const isPlain = (value: unknown): boolean =>
  value === undefined || typeof value === "number" || value === FIRST_REQUEST;

/** `make` for configs that callers pass with each call: an equal config has the same limit. */
export function cached<L>(make: (name: string, config: Config) => L): (name: string, config: Config) => L {
  const limits = new Map<string, L>();
  return (name, config) => {
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
  };
}
