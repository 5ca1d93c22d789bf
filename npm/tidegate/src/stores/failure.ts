/** What a store's caller gets for an error, and how much of the store it concerns. */
import { NotAState } from "../limit/codec.ts";
import { isInputError, isStoreError, messageOf, readable, StoreError } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";

/** What an operation is on: a limit and key, or one shard of it. */
export interface Target {
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly shard?: number | undefined;
}

export const idsOf = (targets: readonly Target[]): string[] =>
  targets.map(({ limit, key, shard }) => limit.identity(key, shard));

/** A failure of one limit and key, which does not affect others. */
export class KeyError extends Error {
  /** `answered`: whether the store answered the call, and therefore works. */
  constructor(
    message: string,
    readonly answered: boolean,
  ) {
    super(message);
  }
}

/** One of our errors as it is, any other as the cause of a `StoreError`. */
export function failure(thrown: unknown, store: string, operation: string, identity: string): unknown {
  const error = readable(thrown);
  if (isInputError(error) || isStoreError(error)) return error;
  const scope = error instanceof NotAState || error instanceof KeyError ? "key" : "store";
  return new StoreError(messageOf(error), { store, operation, identity, cause: error, scope });
}
