/** The options of `createFetch`, and the table of their checks. */
import { ANY, type Check, FLAG, FUNCTION, integerFrom, orFunction } from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import type { Duration } from "../limit/duration.ts";
import type { Clock } from "./clock.ts";
import { FRACTION } from "../limit/jitter.ts";
import { SHARED } from "./options.ts";
import type { Semaphore } from "./semaphore.ts";
import type { ConfigOrLimit } from "./source.ts";

export type Input = Parameters<typeof globalThis.fetch>[0];
export type Init = NonNullable<Parameters<typeof globalThis.fetch>[1]>;

/** A retry that is about to wait. */
export interface Retry {
  /** Of the request. */
  readonly url: URL;
  /** The response's status. */
  readonly status: number;
  /** How many times the request was sent: 1 before the first retry. */
  readonly attempts: number;
  /** ms until it is sent again, at the earliest. */
  readonly wait: number;
}

/** Settings of {@link createFetch}. */
export interface FetchOptions<N extends string = string> {
  /** The client's own limit, one token per request: a config, or a limit of a limiter, which a fleet shares. Default none. */
  limit?: ConfigOrLimit<N> | undefined;
  /**
   * The key of the server's limits, and of the own one unless that is `{ limiter, name, key }` with a key: `"origin"` (default), or a
   * function, such as one key per account.
   */
  key?: "origin" | ((url: URL, init: Init | undefined) => string) | undefined;
  /** Tokens of a request: 0 to 2^40, or a function that returns them; default 1. */
  count?: number | ((url: URL, init: Init | undefined) => number) | undefined;
  /** Most retries of one request: an integer from 0; default 3. */
  retries?: number | undefined;
  /** Whether a request may be sent twice; default by method, or if it has an `Idempotency-Key`. */
  idempotent?: ((url: URL, init: Init | undefined) => boolean) | undefined;
  /**
   * Whether a response is a denial, which is retried and holds back the requests of its key; `undefined` if the default
   * decides. For a server that denies by another status, such as 529, or a 503 that no retry helps. It must not read the body.
   */
  retry?: ((response: Response) => boolean | undefined) | undefined;
  /** Longest wait for one retry, ms or a string such as `"1m"`; a response that requires more is returned. Default 60,000. */
  maxWait?: Duration | undefined;
  /**
   * Longest wait of a request in total, ms or a string: own tokens, server's limits, `concurrency`, retries. Default
   * unlimited: if a server reports that nothing is left for an hour, or sets `Retry-After` to it, the next request waits an hour.
   */
  deadline?: Duration | undefined;
  /**
   * Random addition to the wait before a retry, as a fraction of it: 0 to 1; default 0.5. No wait gets shorter, or longer
   * than `maxWait`.
   */
  jitter?: number | undefined;
  /** If less than this fraction of the server's limit is left, requests are spaced until its reset: 0 to 1; default 0.2. */
  slowBelow?: number | undefined;
  /** Concurrent GETs of the same URL, headers and settings, without a signal, share one request; default false. */
  share?: boolean | undefined;
  /** Most queued requests per key; default 10,000. */
  maxQueued?: number | undefined;
  /** Most requests in flight, over all keys; or a semaphore. Default unlimited. */
  concurrency?: number | Semaphore | undefined;
  /** Called with each retry before its wait. An error of it changes nothing. */
  onRetry?: ((retry: Retry) => void) | undefined;
  /** The function that sends; default the host's `fetch`. Its properties, such as Bun's `preconnect`, are not used. */
  fetch?: ((input: Input, init?: Init) => Promise<Response>) | undefined;
  /** The clock and the timers; default the host's. */
  clock?: Clock | undefined;
}

export const FETCH_OPTIONS: Readonly<Record<keyof FetchOptions, Check>> = {
  limit: ANY,
  key: { expects: '"origin", or a function', accepts: (key) => key === "origin" || typeof key === "function" },
  count: orFunction(TOKENS),
  retries: integerFrom("an integer from 0", 0),
  idempotent: FUNCTION,
  retry: FUNCTION,
  deadline: SHARED.maxWait,
  jitter: FRACTION,
  slowBelow: FRACTION,
  share: FLAG,
  onRetry: FUNCTION,
  fetch: FUNCTION,
  ...SHARED,
};
