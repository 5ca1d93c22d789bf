import { checkFields, fieldTable } from "../limit/config.ts";
import { InputError, show } from "../limit/errors.ts";
import { checkFunction } from "./options.ts";

/** Settings of {@link singleFlight}. */
export interface SingleFlightOptions<A extends readonly unknown[]> {
  /** Which calls are the same. Default: those with equal arguments, which are then strings, numbers and the like. */
  key?: ((...args: A) => string) | undefined;
}

const OPTIONS = fieldTable("key");
const NO_OBJECT = {};

function keyOf(args: readonly unknown[]): string {
  const parts = args.map((arg) => {
    if ((typeof arg !== "object" || arg === null) && typeof arg !== "function" && typeof arg !== "symbol") {
      return typeof arg === "string" ? arg : show(arg);
    }
    throw new InputError("key", "given, where an argument is neither a string nor a number nor the like", undefined);
  });
  return JSON.stringify(parts.map((part, i) => [typeof args[i], part]));
}

/**
 * A function whose concurrent identical calls share one: the first runs, those that come until it is done get its result,
 * or its error. Then it is forgotten.
 *
 * ```ts
 * const load = singleFlight((id: string) => fetch(`/users/${id}`).then((response) => response.json()));
 * const [a, b] = await Promise.all([load("7"), load("7")]); // one request
 * ```
 *
 * Calls with different `this` are different. Rejects with an `InputError` where an argument is an object and there is no
 * `key`.
 */
export function singleFlight<T, A extends unknown[], R>(
  fn: (this: T, ...args: A) => R,
  options: SingleFlightOptions<NoInfer<A>> = {},
): (this: T, ...args: A) => Promise<Awaited<R>> {
  checkFunction("fn", fn);
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "singleFlight");
  const { key: named } = options;
  if (named !== undefined) checkFunction("key", named);
  const flights = new WeakMap<object, Map<string, Promise<Awaited<R>>>>();

  return async function (this: T, ...args: A): Promise<Awaited<R>> {
    const key: unknown = named === undefined ? keyOf(args) : named(...args);
    if (typeof key !== "string") throw new InputError("key", "a string", key);
    const owner = typeof this === "object" && this !== null ? this : NO_OBJECT;
    let flying = flights.get(owner);
    if (flying === undefined) {
      flying = new Map();
      flights.set(owner, flying);
    }
    const known = flying.get(key);
    if (known !== undefined) return known;
    const flight = new Promise<Awaited<R>>((done) => done(fn.apply(this, args) as Awaited<R>));
    flying.set(key, flight);
    try {
      return await flight;
    } finally {
      flying.delete(key);
    }
  };
}
