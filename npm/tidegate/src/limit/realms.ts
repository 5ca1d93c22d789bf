/**
 * Checks that also accept values of other realms: in Jest's sandbox, or a `node:vm`, the host's promises, bytes and errors are
 * not instances of the sandbox's own classes.
 */

/** A promise of any realm. */
export const isPromise = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === "function";

/** The class of an object of any realm, such as `"[object Uint8Array]"`. */
export const tagOf = (value: unknown): string => Object.prototype.toString.call(value);

/** The tag of an object that has no class of the language or the host. */
export const PLAIN = "[object Object]";

/** Bytes of any realm. */
export const isBytes = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array || tagOf(value) === "[object Uint8Array]";

/** An error of any realm. */
export const isError = (value: unknown): value is Error => value instanceof Error || tagOf(value) === "[object Error]";
