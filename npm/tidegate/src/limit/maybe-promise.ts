/** Values that may be promises: results of synchronous stores stay synchronous. */
import { isPromise } from "./realms.ts";

/** A value, or the promise of one: the result of a user's hook, or of a store. */
export type MaybePromise<T> = T | PromiseLike<T>;

/** The values in order: synchronously, unless one of them is a promise. */
export const together = <T>(values: readonly MaybePromise<T>[]): MaybePromise<T[]> =>
  values.some(isPromise) ? Promise.all(values) : (values as T[]);

/** Calls `next` with the value: synchronously, unless it is a promise. */
export function follow<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  // Of a string or a number, looking for `then` takes longer than all else here. Stubs of remote calls are functions.
  const mayWait = typeof value === "object" || typeof value === "function";
  return mayWait && isPromise(value) ? value.then(next) : next(value);
}
