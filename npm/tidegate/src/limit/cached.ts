/** Caches the limits of configs that are passed with calls, so that not every call has to check its config. */
import type { Config } from "./config.ts";

/** The most configs that are cached. */
const MOST = 1000;

/** From a field to its value, and from that to the next field: faster to find than a text of all of them. */
class Branch<L> extends Map<unknown, Branch<L>> {
  limit?: L;

  to(part: unknown): Branch<L> {
    const known = this.get(part);
    if (known !== undefined) return known;
    const next = new Branch<L>();
    this.set(part, next);
    return next;
  }
}

/** Caches `make`: configs with the same fields in the same order have the same limit. */
export function cached<L>(make: (name: string, config: Config) => L): (name: string, config: Config) => L {
  let root = new Branch<L>();
  let made = 0;
  return (name, config) => {
    if (typeof config !== "object" || config === null) return make(name, config);
    // Read once: getters may return something else the next time.
    const read: Config & Record<string, unknown> = { ...config };
    // A value that is an object may be another one each time, or change its fields.
    for (const field in read) if (typeof read[field] === "object") return make(name, read);
    // Counted before the config is checked: configs that are rejected have branches, too.
    if (made > MOST) {
      root = new Branch();
      made = 0;
    }
    let at = root.to(name);
    for (const field in read) at = at.to(field).to(read[field]);
    if (at.limit === undefined) {
      made++;
      at.limit = make(name, read);
    }
    return at.limit;
  };
}
