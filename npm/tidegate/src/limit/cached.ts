/** The limits of configs that come with calls, so that each call need not check its own. */
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

/** `make` for configs that callers pass with each call: one with the same fields, in their order, has the same limit. */
export function cached<L>(make: (name: string, config: Config) => L): (name: string, config: Config) => L {
  let root = new Branch<L>();
  let made = 0;
  return (name, config) => {
    if (typeof config !== "object" || config === null) return make(name, config);
    // Read once: getters may return something else the next time.
    const read: Config & Record<string, unknown> = { ...config };
    // Another object each time, or one whose fields may change.
    for (const field in read) if (typeof read[field] === "object") return make(name, read);
    // Also what is refused has its branches.
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
