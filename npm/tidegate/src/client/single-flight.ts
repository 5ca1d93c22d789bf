/** One call for identical concurrent ones. */
import { check, checkTable, FUNCTION, STRING } from "../limit/checks.ts";
import { InputError } from "../limit/errors.ts";
import type { ArgumentsOf } from "./options.ts";

/** Settings of {@link singleFlight}. */
export interface SingleFlightOptions<A extends readonly unknown[]> {
  /** The identity of a call. Default: its arguments, which must then be primitive values, and no symbols. */
  key?: ((...args: A) => string) | undefined;
}

function keyOf(args: readonly unknown[]): string {
  const parts = args.map((arg) => {
    if ((typeof arg !== "object" || arg === null) && typeof arg !== "function" && typeof arg !== "symbol") {
      return [typeof arg, String(arg)];
    }
    throw new InputError("key", "given if an argument is neither a string nor a number nor the like", undefined);
  });
  return JSON.stringify(parts);
}

/**
 * A function whose concurrent identical calls share one: the first runs, and those made until it ends get its result or
 * its error. Results are not kept.
 *
 * ```ts
 * const load = singleFlight((id: string) => fetch(`/users/${id}`).then((response) => response.json()));
 * const [a, b] = await Promise.all([load("7"), load("7")]); // one request
 * ```
 *
 * Calls with different `this` are different. Rejects with an `InputError` if an argument is an object, a function or a
 * symbol and there is no `key`.
 */
export function singleFlight<T, A extends unknown[], R>(
  fn: (this: T, ...args: A) => R,
  options: SingleFlightOptions<ArgumentsOf<A>> = {},
): (this: T, ...args: A) => Promise<Awaited<R>> {
  check("fn", fn, FUNCTION);
  checkTable("singleFlight", options, { key: FUNCTION });
  const { key: named } = options;
  /** Of calls that run. A static method's `this` is a function, its class; a plain call's is `undefined`. */
  const flights = new Map<T, Map<string, Promise<Awaited<R>>>>();

  return async function (this: T, ...args: A): Promise<Awaited<R>> {
    const key = check("key", named === undefined ? keyOf(args) : named(...args), STRING);
    const ofThis = flights.get(this) ?? new Map<string, Promise<Awaited<R>>>();
    // Before the call, which may make another one.
    flights.set(this, ofThis);
    const running = ofThis.get(key);
    if (running !== undefined) return running;
    const flight = new Promise<Awaited<R>>((done) => done(fn.apply(this, args) as Awaited<R>));
    ofThis.set(key, flight);
    try {
      return await flight;
    } finally {
      ofThis.delete(key);
      if (ofThis.size === 0) flights.delete(this);
    }
  };
}
