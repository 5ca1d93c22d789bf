/** A value, or the promise of one: what a hook of the user's returns, and a store answers. */
export type Pending<T> = T | PromiseLike<T>;

/** Whether it is to be waited for. */
export const isPending = <T>(value: Pending<T>): value is PromiseLike<T> =>
  typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";

/** Goes on at once where the value is there, so that what is synchronous stays so. */
export function follow<T, U>(value: Pending<T>, next: (value: T) => Pending<U>): Pending<U> {
  return isPending(value) ? value.then(next) : next(value);
}
