import { checkFields, fieldTable } from "../../limit/config.ts";
import { InputError } from "../../limit/errors.ts";
import { type Clock, checkClock } from "../clock.ts";
import { checkConcurrency, checkFunction, checkMaxQueued, checkMaxWait, checkTokens } from "../options.ts";
import type { Semaphore } from "../semaphore.ts";
import type { Policy } from "../source.ts";
import type { Init } from "./request.ts";

/** A retry that is about to be waited for. */
export interface Retry {
  readonly url: URL;
  /** The status that was answered. */
  readonly status: number;
  /** How many times it was sent: 1 before the first retry. */
  readonly attempts: number;
  /** ms until it is sent again, at the earliest. */
  readonly wait: number;
}

/** Settings of {@link createFetch}. */
export interface FetchOptions {
  /** Tokens of one's own, one a request: a config, or a limit of a limiter, which a fleet shares. Default none. */
  limit?: Policy | undefined;
  /** Whose limit, own and told: `"origin"` (default), or what tells it, such as one key an account. */
  key?: "origin" | ((url: URL, init: Init | undefined) => string) | undefined;
  /** Tokens of a request: 0 to 2^40, or what tells them; default 1. */
  count?: number | ((url: URL, init: Init | undefined) => number) | undefined;
  /** Most retries of one request: a whole number from 0; default 3. */
  retries?: number | undefined;
  /** Whether a request may be sent twice; default by method, or where it has an `Idempotency-Key`. */
  idempotent?: ((url: URL, init: Init | undefined) => boolean) | undefined;
  /** Longest wait for one retry, ms; where the server asks for more, its answer is passed on. Default 60,000. */
  maxWait?: number | undefined;
  /**
   * ms that a request may wait in all, from its call on: own tokens, told limits, retries. Default without end: where a server
   * says that nothing is left for an hour, the next request waits an hour.
   */
  deadline?: number | undefined;
  /** What is added to waits at random, as a fraction of them: 0 to 1; default 0.5. Nobody comes earlier than told. */
  jitter?: number | undefined;
  /** From when on what is left is spread over the time it must do: a fraction of the server's limit, 0 to 1; default 0.2. */
  slowBelow?: number | undefined;
  /** Concurrent GETs of the same URL and headers, without a signal, share one request; default false. */
  share?: boolean | undefined;
  /** Most requests that wait for each key; default 10,000. */
  maxQueued?: number | undefined;
  /** How many are on their way at once, of all keys; or a semaphore. Default any number. */
  concurrency?: number | Semaphore | undefined;
  /** Told of each retry before its wait. */
  onRetry?: ((retry: Retry) => void) | undefined;
  /** What sends; default the host's `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /** The clock and the timers; default the host's. */
  clock?: Clock | undefined;
}

const OPTIONS = fieldTable(
  "limit",
  "key",
  "count",
  "retries",
  "idempotent",
  "maxWait",
  "deadline",
  "jitter",
  "slowBelow",
  "share",
  "maxQueued",
  "concurrency",
  "onRetry",
  "fetch",
  "clock",
);

function checkPart(field: string, part: number): number {
  if (typeof part === "number" && part >= 0 && part <= 1) return part;
  throw new InputError(field, "a number from 0 to 1", part);
}

/** The options with their defaults, checked. */
export interface Settings {
  readonly key: NonNullable<FetchOptions["key"]>;
  readonly count: NonNullable<FetchOptions["count"]>;
  readonly retries: number;
  readonly share: boolean;
  readonly idempotent: FetchOptions["idempotent"];
  readonly onRetry: FetchOptions["onRetry"];
  readonly jitter: number;
  readonly slowBelow: number;
  readonly maxWait: number;
  readonly deadline: number | undefined;
  readonly maxQueued: number;
  readonly semaphore: Semaphore | undefined;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
}

export function checkFetchOptions(options: FetchOptions): Settings {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "createFetch");
  const { key = "origin", count = 1, retries = 3, jitter = 0.5, slowBelow = 0.2, share = false } = options;
  if (key !== "origin" && typeof key !== "function") throw new InputError("key", '"origin", or a function', key);
  if (typeof count !== "function") checkTokens(count);
  if (!Number.isInteger(retries) || retries < 0) throw new InputError("retries", "a whole number from 0", retries);
  if (typeof share !== "boolean") throw new InputError("share", "true or false", share);
  const { idempotent, onRetry, fetch } = options;
  for (const [field, hook] of Object.entries({ idempotent, onRetry, fetch })) {
    if (hook !== undefined) checkFunction(field, hook);
  }
  return {
    key,
    count,
    retries,
    share,
    idempotent,
    onRetry,
    jitter: checkPart("jitter", jitter),
    slowBelow: checkPart("slowBelow", slowBelow),
    maxWait: checkMaxWait(options.maxWait) ?? 60_000,
    deadline: checkMaxWait(options.deadline),
    maxQueued: checkMaxQueued(options.maxQueued),
    semaphore: checkConcurrency(options.concurrency),
    clock: checkClock(options.clock),
    // Looked up at each request: whoever puts another in its place is heard.
    fetch: fetch ?? ((...args: Parameters<typeof globalThis.fetch>) => globalThis.fetch(...args)),
  };
}
