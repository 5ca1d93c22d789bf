/** The options of the drop-in stores, and the limiter that each has. */
import { Limiter } from "../../limiter/limiter.ts";
import { checkLimiterOptions, STORE } from "../../limiter/options.ts";
import { ANY, checkTable } from "../../limit/checks.ts";
import { InputError } from "../../limit/errors.ts";
import { checkName } from "../../limit/evaluator.ts";
import type { Store } from "../../stores/contract.ts";

/** Where a drop-in store counts hits. */
export interface HitOptions<S extends Store> {
  /** Any store of this package; default: one in memory, for this drop-in alone. */
  store?: S | undefined;
  /**
   * The name of what is counted, 1 to 64 characters of `A-Z a-z 0-9 _ . -` (58 for Fastify and Nest). Required with a
   * `store`: servers that use the same name on the same backing store share the counts; two limits need two names. Without
   * a `store`, the default is the name of the other package.
   */
  name?: string | undefined;
}

export interface CheckedHits<S extends Store> {
  readonly name: string;
  /** The other package, which decides what becomes of a call whose store fails. */
  readonly peer: string;
  readonly store: S | undefined;
}

/** A limiter whose limits come with their calls; in its own memory without a `store`. */
export const hitLimiter = <S extends Store>({ store, peer }: CheckedHits<S>): Limiter<string, S> =>
  new Limiter<string, S>(
    {},
    { ...checkLimiterOptions<S>({ store }), denied: `rejected, and ${peer} passes or fails them` },
  );

const OPTIONS = { store: STORE, name: ANY };
const UNIQUE =
  "a name that no other drop-in store has on this `store`: make each drop-in store once, and give two limits two names";

/** The names in use on each store object of this process. */
const used = new WeakMap<Store, Set<string>>();

/**
 * Checks the options of a store for `peer`, and reserves its name on the store object. `limits` lists the names of the limits
 * that it creates. Throws an `InputError`.
 */
export function checkHits<S extends Store>(
  options: HitOptions<S>,
  peer: string,
  limits: (name: string) => readonly string[] = (name) => [name],
): CheckedHits<S> {
  checkTable("a drop-in store", options, OPTIONS, "an object, such as { store, name }");
  const { store, name } = options;
  if (store === undefined) {
    for (const limit of limits(name ?? peer)) checkName(limit);
    return { name: name ?? peer, peer, store };
  }
  if (name === undefined) {
    const rule = 'given with a `store`, such as { store, name: "login" }: each limit needs a name of its own';
    throw new InputError("name", rule, name);
  }
  const names = limits(checkName(name)).map(checkName);
  const taken = used.get(store) ?? new Set();
  if (names.some((limit) => taken.has(limit))) throw new InputError("name", UNIQUE, name);
  for (const limit of names) taken.add(limit);
  used.set(store, taken);
  return { name, peer, store };
}
