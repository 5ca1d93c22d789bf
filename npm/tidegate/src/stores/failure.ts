/** What a store's caller gets for an error, and how much of the store it concerns. */
import { NotAState } from "../limit/codec.ts";
import {
  type InputError,
  isInputError,
  isStoreError,
  messageOf,
  readable,
  StoreError,
  type StoreErrorDetails,
} from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import { monotonicNow } from "../limit/monotonic.ts";
import type { Deadline, Key } from "./contract.ts";

/** What an operation is on: a limit and key, or one shard of it. */
export interface Target {
  readonly limit: Limit;
  readonly key: Key;
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

/** Whether the store answered a call that failed for its key alone. If it did not, that shows nothing about the store. */
export function isAnswered({ answered, cause }: Partial<KeyError>): boolean {
  return (answered ?? (cause as Partial<KeyError> | undefined)?.answered) !== false;
}

/** For a call that this process was too busy to send. Not a failure of the server, to which nothing was sent. */
export const TOO_BUSY: Error = /* @__PURE__ */ new KeyError(
  "its deadline passed before it was sent, because this process was busy; nothing was taken",
  false,
);

/** For a call that waits for earlier ones. */
export const NOT_SENT: Error = /* @__PURE__ */ new KeyError(
  "the call was not sent: its deadline passed while earlier calls ran",
  false,
);

/**
 * For a call that waited in this process for most of its time: if the rest is too short, that is not the server's
 * failure.
 */
export const LITTLE_TIME: Error = /* @__PURE__ */ new KeyError("no answer in the time earlier calls left", false);

/**
 * Why a call that has waited since `since` (`performance.now()`, ms) is late if it gets no answer; `undefined` if
 * unknown.
 */
export const whyLate = ({ at }: NonNullable<Deadline>, since: number): Error | undefined =>
  monotonicNow() > (since + at) / 2 ? LITTLE_TIME : undefined;

/** Most errors around a driver's own. */
const MOST_WRAPPERS = 4;

/** What is read of an error of a driver, an ORM or an adapter, and where they have the error that they wrap. */
export interface Wrapper {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly errno?: unknown;
  /** SQLite's number, of node:sqlite. */
  readonly errcode?: unknown;
  /** The server's function that raised it; pg and postgres.js have it. */
  readonly routine?: unknown;
  readonly originalCode?: unknown;
  readonly originalMessage?: unknown;
  /** The statement; TypeORM and Drizzle have it in `query`. */
  readonly sql?: unknown;
  readonly query?: unknown;
  readonly cause?: unknown;
  /** Sequelize's. */
  readonly parent?: unknown;
  readonly original?: unknown;
  /** TypeORM's. */
  readonly driverError?: unknown;
  /** Prisma's. */
  readonly meta?: { readonly driverAdapterError?: unknown } | null;
}

/** An error and those that it wraps, the outermost first. */
export function wrappedIn(error: unknown): Wrapper[] {
  const found: Wrapper[] = [];
  let inner = error;
  while (found.length <= MOST_WRAPPERS && typeof inner === "object" && inner !== null) {
    const error = inner as Wrapper;
    found.push(error);
    // Sequelize 7 prints a warning if `parent` is read.
    inner = error.cause ?? error.parent ?? error.driverError ?? error.meta?.driverAdapterError ?? error.meta;
  }
  return found;
}

/** Whether this holds for an error or one that it wraps. */
export function wraps(error: unknown, is: (one: Wrapper) => boolean): boolean {
  try {
    return wrappedIn(error).some(is);
  } catch {
    // A proxy that has been revoked, or a getter of the client's.
    return false;
  }
}

/** One of our errors as it is, any other as the cause of a `StoreError`. */
export function failure(thrown: unknown, of: StoreErrorDetails): InputError | StoreError {
  const error = readable(thrown);
  if (isInputError(error) || isStoreError(error)) return error;
  const scope = error instanceof NotAState || error instanceof KeyError ? "key" : "store";
  return new StoreError(messageOf(error), { ...of, cause: error, scope });
}
