import { messageOf, StoreError } from "../../limit/errors.ts";

/** The store's name in errors. */
export const STORE = "redis";

/** The error for what a key holds that is not a state. It is never taken for a fresh key. */
export const corrupt = (operation: string, identity: string, what: string): StoreError =>
  new StoreError(`corrupt state: ${what}`, { store: STORE, operation, identity, scope: "key" });

/** The error where the script and the core granted differently, which no sound server does. */
export const disagreement = (server: number, core: number): Error =>
  new Error(`the server granted ${server} of these requests, by the same numbers the core grants ${core}`);

/** Whatever came of a script call, as the error of one request in it. */
export function failure(operation: string, identity: string, cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  return new StoreError(messageOf(cause), { store: STORE, operation, identity, cause });
}
