import { PLAIN, tagOf } from "./realms.ts";

/**
 * Any JavaScript value in a few words, for the end of an error message. A URL is cut after its scheme, as it may have a
 * password.
 */
export function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      // A key of a client's: a terminal would obey control characters that JSON does not escape, and marks that reverse text.
      return JSON.stringify(value.replace(/^([^/ ]+:\/\/|.{80}).+/s, "$1…")).replace(/\p{C}/gu, "?");
    case "bigint":
      return `${String(value).slice(0, 80)}n`;
    case "function":
    case "symbol":
      return `a ${typeof value}`;
    case "object":
      try {
        if (typeof (value as { then?: unknown } | null)?.then === "function") return "a promise; `await` it first";
        if (Array.isArray(value)) return "an array";
        // A Map or a Request by its class.
        if (value) return tagOf(value).replace(PLAIN, "an object");
      } catch {
        // A proxy that has been revoked, such as a draft of Immer's, or a getter of the caller's.
        return "an object";
      }
  }
  return String(value);
}

/** A value in a few words; of an object whether it is an array or a promise, or else its first fields. */
export function showObject(value: unknown): string {
  const shown = show(value);
  if (shown !== "an object") return shown;
  const fields = Object.keys(value as object)
    .slice(0, 5)
    .join(", ");
  return fields ? `${shown} with ${shownName(fields)}` : shown;
}

/** A name in an error message: as {@link show}, without quotes. */
export const shownName = (name: string): string => show(name).slice(1, -1);

/** Keeps a field of a client's error out of logs, because a statement has the keys of other callers. */
export function hide(error: unknown, field: string): void {
  if (Object.hasOwn(Object(error), field)) Reflect.defineProperty(error as object, field, { enumerable: false });
}

/** A value that was passed instead of an object of a library's. A class or function gets its own remedy. */
export const showInstead = (value: unknown): string =>
  typeof value === "function" ? "a class or function; pass what it makes" : showObject(value);

/** The same instead of a client. A connection string (`host=…`, `user:…@host`) may have a password anywhere. */
export const showClient = (value: unknown): string =>
  typeof value === "string" && /^[^/]*[=@]/.test(value) ? "a connection string" : showInstead(value);

/** The same for a Worker's binding; `setting` is the field of its configuration that creates such bindings. */
export const showBinding =
  (setting: string) =>
  (value: unknown): string =>
    value === undefined ? `undefined; add this binding to \`${setting}\` in wrangler.jsonc` : showInstead(value);

/** The fields of a thrown value that are read, apart from its message. */
type Thrown = { name?: unknown; code?: unknown; cause?: Thrown } | undefined;
/** How many errors of a chain of causes are read. */
const MOST_CAUSES = 5;

/**
 * Whatever a client threw; or another error if it, or one of its causes, cannot be read: a revoked proxy, or a getter that
 * throws.
 */
export function readable(error: unknown): unknown {
  try {
    let at = error as Thrown;
    for (let left = MOST_CAUSES; left--; at = at?.cause) void [messageOf(at), at?.name, at?.code];
    return error;
  } catch {
    return new Error("an error that cannot be read");
  }
}

/** How `fetch` refuses a URL with a password, which its message has. */
const WITH_PASSWORD = /^Request cannot .* credentials/;

/** An error of a client that sends by `fetch`, without the password of its URL. */
export const withoutPassword = (error: unknown): unknown =>
  WITH_PASSWORD.test(messageOf(error)) ? new Error("`fetch` refuses a URL that includes credentials") : error;

/** Characters of a message that are kept. An ORM's message may contain all values of a statement. */
const MOST_TEXT = 2000;

export const shortened = (text: string): string => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text);

/** The message of whatever was thrown: clients throw strings, `undefined` and objects without a prototype, too. */
export function messageOf(error: unknown): string {
  const {
    message,
    errors,
    cause,
    constructor: type,
  } = Object(error) as { [name: string]: unknown; errors?: unknown[] };
  // The message in Node.js if a host cannot be reached; the reason is the cause.
  if (message === "fetch failed" && cause && cause !== error) return `${message}: ${messageOf(cause)}`;
  if (typeof message === "string" && message !== "") return message;
  try {
    // Node.js has an error for each address of a host: "connect ECONNREFUSED ::1:3306".
    const text = String(errors?.[0] ?? error);
    // node-redis's class TimeoutError has no message, and no name of its own.
    return text === "Error" ? (type as typeof Error).name : text;
  } catch {
    return "an error without a message";
  }
}

/**
 * A mistake in a call. Its message is one sentence: "`count` must be a finite number of tokens from 0 to 1099511627776; got
 * NaN". It is thrown before any state is read or written.
 */
export class InputError extends Error {
  override readonly name = "InputError";
  readonly code = "TIDEGATE_INPUT";
  /** The argument or field that is wrong. */
  readonly field: string;
  /**
   * The value that was passed. Not enumerable, so that no log prints it: settings passed instead of a client have a
   * password.
   */
  declare readonly value: unknown;
  /** What was expected: the sentence after "must be". */
  readonly rule: string;

  constructor(field: string, rule: string, value: unknown, got: string = show(value)) {
    super(`\`${field}\` must be ${rule}; got ${got}`);
    this.field = field;
    Object.defineProperty(this, "value", { value });
    this.rule = rule;
  }
}

/** What a {@link StoreError} is about. */
export interface StoreErrorDetails {
  /** The store's name, such as `"redis"`. */
  readonly store: string;
  /** What it was doing, such as `"limit"`. */
  readonly operation: string;
  /** Which limit and key: `name`, `name:key`, or several of them joined by a comma. */
  readonly identity: string;
  /** The client's error. */
  readonly cause?: unknown;
  /**
   * What failed. `"key"`: only the state of this limit and key, which is corrupt, locked or contended, while the store
   * answers. `"store"`, the default: the store itself, or the connection to it.
   */
  readonly scope?: "key" | "store" | undefined;
}

/** A store failed: it is down, too slow, or holds something that is not a state. `cause` is the client's error. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code = "TIDEGATE_STORE";
  /** The store's name, such as `"redis"`. */
  readonly store: string;
  /** What it was doing, such as `"limit"`. */
  readonly operation: string;
  /** Which limit and key: `name`, `name:key`, or several of them joined by a comma. */
  readonly identity: string;
  /** Whether only this key's state failed, or the store: only the latter counts as an outage. */
  readonly scope: "key" | "store";

  constructor(what: string, details: StoreErrorDetails) {
    const { store, operation, identity, cause, scope = "store" } = details;
    // An ORM's message has several lines. A client chooses the key: a terminal would obey control characters that JSON
    // does not escape, and marks that reverse text.
    const why = shortened(what).trim().replace(/\s+/g, " ");
    super(
      `${store}: ${operation} of ${JSON.stringify(identity)} failed: ${why}`.replace(/[\p{Cc}\u2028-\u2069]/gu, "?"),
      { cause },
    );
    this.store = store;
    this.operation = operation;
    this.identity = identity;
    this.scope = scope;
  }
}

/** A denial, thrown if a call has `throws: true`. If the store failed, `cause` is its error. */
export class RateLimitError extends Error {
  override readonly name = "RateLimitError";
  readonly code = "TIDEGATE_RATE_LIMITED";
  readonly kind = "RateLimited";
  /** The limit's name. */
  readonly limit: string;
  /** Epoch ms from which the same request is granted; absent if no wait helps, and if the store failed. */
  readonly retryAt: number | undefined;
  /** `retryAt` as a wait, in ms. */
  readonly retryAfter: number | undefined;

  constructor(
    limit: string,
    decision: {
      retryAt?: number | undefined;
      retryAfter?: number | undefined;
      reason?: string | undefined;
      cause?: unknown;
    },
  ) {
    const {
      retryAt,
      retryAfter,
      cause,
      reason = cause === undefined ? "no retry time" : "the store failed",
    } = decision;
    const wait = retryAfter === undefined ? reason : `retry in ${retryAfter} ms`;
    super(`rate limited by ${JSON.stringify(limit)}: ${wait}`, cause === undefined ? undefined : { cause });
    this.limit = limit;
    this.retryAt = retryAt;
    this.retryAfter = retryAfter;
  }

  /** The error as plain data, to send to a client. */
  toJSON(): { kind: "RateLimited"; name: string; retryAt: number | undefined; retryAfter: number | undefined } {
    return { kind: this.kind, name: this.limit, retryAt: this.retryAt, retryAfter: this.retryAfter };
  }
}

/** Whether it is an error with this code, also if another copy of the package or another realm made it. */
export const hasCode = (error: unknown, code: string): boolean =>
  typeof error === "object" && error !== null && (error as { code?: unknown }).code === code;

/** Whether it is an {@link InputError}, by its code: also one of another copy of the package or another realm. */
export const isInputError = (error: unknown): error is InputError => hasCode(error, "TIDEGATE_INPUT");
/** Whether it is a {@link StoreError}, by its code. */
export const isStoreError = (error: unknown): error is StoreError => hasCode(error, "TIDEGATE_STORE");
/** Whether it is a {@link RateLimitError}, by its code. */
export const isRateLimitError = (error: unknown): error is RateLimitError => hasCode(error, "TIDEGATE_RATE_LIMITED");
