/** The limits of configs that come with calls, so that each call need not check its own. */
import type { Config } from "./config.ts";

/** The most configs that are cached. */
const MOST = 1000;

/** Whether it is a part of an id, which `|` separates. */
const isText = (value: unknown): boolean => typeof value === "string" && !value.includes("|");

/** `make` for configs that callers pass with each call: one with the same fields, in their order, has the same limit. */
export function cached<L>(make: (name: string, config: Config) => L): (name: string, config: Config) => L {
  const limits = new Map<string, L>();
  return (name, config) => {
    if (typeof config !== "object" || config === null || !isText(name)) return make(name, config);
    // Read once: getters may return something else the next time.
    const read: Config & Record<string, unknown> = { ...config };
    let id = name;
    for (const field in read) {
      const value = read[field];
      if (!isText(field) || !(value === undefined || Number.isFinite(value) || isText(value))) return make(name, read);
      id += `|${field}|${typeof value}|${value as string}`;
    }
    let limit = limits.get(id);
    if (limit === undefined) {
      limit = make(name, read);
      if (limits.size >= MOST) limits.clear();
      limits.set(id, limit);
    }
    return limit;
  };
}
