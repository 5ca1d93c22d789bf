/** Functions that wait for their tokens: source.ts is where the tokens come from, queue.ts runs the calls in order. */
import { abortError } from "../limit/abort.ts";
import { check, checkTable, FUNCTION, msOf, SIGNAL, STRING } from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import { systemClock } from "./clock.ts";
import {
  type ArgumentsOf,
  DEFAULT_PRIORITY,
  DEFAULT_QUEUED,
  PRIORITY,
  semaphoreOf,
  SHARED,
  THROTTLE,
  type ThrottleOptions,
  TURN,
  type TurnOptions,
} from "./options.ts";
import { Queues } from "./queues.ts";
import type { Semaphore } from "./semaphore.ts";
import { type ConfigOrLimit, type Source, sourcesOf } from "./source.ts";

/** A function whose calls are queued. Each call keeps its `this`. */
export interface Throttled<T, A extends unknown[], R> {
  /** Resolves or rejects as the function does, after waiting for its turn. */
  (this: T, ...args: A): Promise<Awaited<R>>;
  /** The same function with settings for one call: `ask.with({ signal, priority: 9 })(question)`. */
  with(options: TurnOptions): (this: T, ...args: A) => Promise<Awaited<R>>;
  /** Calls that wait. */
  readonly queued: number;
  /** Calls that run. */
  readonly running: number;
  /** Resolves once no call waits or runs, and the tokens of those that left are returned. */
  idle(): Promise<void>;
  /** Refuses further calls with a {@link QueueError}. Resolves as `idle` does. */
  drain(): Promise<void>;
  /** Rejects all queued calls with this reason, by default an `AbortError`, and returns their tokens. */
  clear(reason?: unknown): void;
}

/**
 * A function whose calls run when their tokens are due: in order, and spaced as the limit requires. Each call reserves
 * its tokens when it is made, so its time is fixed from then on; nothing polls, and one timer waits for the next call.
 *
 * ```ts
 * const ask = throttle(askModel, { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 });
 * const answers = await Promise.all(questions.map((question) => ask(question)));
 * ```
 *
 * `limit` is a config, for a private limit in memory; or `{ limiter, name, key }`, a limit that others share: with a
 * store on a server, a whole fleet. `capacity` is how many calls run together after a pause; with 0 all are spaced. A
 * fixed window runs its calls at each window's start.
 *
 * Aborting a queued call rejects it with the signal's reason and returns its tokens; later calls move up. Tokens that
 * others have reserved behind cannot be returned, and serve this queue's next calls. A call whose reservation is denied
 * (`maxReserved`) rejects with a `RateLimitError`; if the store failed and `onStoreError` denies, with its error.
 * Calls that could not run in time (a blocked event loop, no free place), or that use the tokens of an aborted one, catch
 * up by at most the capacity and one call. On Cloudflare Workers make it in the handler, with `{ limiter, name, key }`: a
 * timer there ends with the request that set it.
 *
 * Throws an `InputError` immediately if the limit or an option is wrong; a mistake in one call rejects that call.
 */
export function throttle<T, A extends unknown[], R, const N extends string = string>(
  fn: (this: T, ...args: A) => R,
  limit: ConfigOrLimit<N>,
  options: ThrottleOptions<ArgumentsOf<A>> = {},
): Throttled<T, A, R> {
  return queued(fn, options, (now) => sourcesOf(limit, now));
}

/**
 * A function of which at most `places` calls run concurrently, with the interface of {@link throttle}: further calls
 * wait in order.
 *
 * ```ts
 * const load = concurrent(loadPage, 4);
 * ```
 *
 * `places` is an integer from 1, or a shared semaphore.
 */
export function concurrent<T, A extends unknown[], R>(
  fn: (this: T, ...args: A) => R,
  places: number | Semaphore,
  options: Omit<ThrottleOptions<ArgumentsOf<A>>, "concurrency" | "count"> = {},
): Throttled<T, A, R> {
  return queued(fn, { ...options, concurrency: check("places", places, SHARED.concurrency) });
}

function queued<T, A extends unknown[], R>(
  fn: (this: T, ...args: A) => R,
  options: ThrottleOptions<A>,
  sourcesBy?: (now: () => number) => (key?: string) => Source,
): Throttled<T, A, R> {
  check("fn", fn, FUNCTION);
  checkTable("throttle", options, THROTTLE);
  const { clock = systemClock(), maxQueued = DEFAULT_QUEUED, concurrency, count: countOf = 1 } = options;
  // Read once, as it is checked once: the caller may change its object.
  const { priority: priorityOf = DEFAULT_PRIORITY, key: keyOf, signal: signalOf, maxWait = Infinity } = options;
  const semaphore = semaphoreOf(concurrency);
  const sources = sourcesBy?.(() => clock.now());
  const queues = new Queues((key) => ({ clock, maxQueued, semaphore, source: sources?.(key) }));

  async function call(self: T, args: A, turn: TurnOptions): Promise<Awaited<R>> {
    const count = turn.count ?? (typeof countOf === "function" ? check("count", countOf(...args), TOKENS) : countOf);
    const priority =
      turn.priority ??
      (typeof priorityOf === "function" ? check("priority", priorityOf(...args), PRIORITY) : priorityOf);
    const key = turn.key ?? (keyOf === undefined ? undefined : check("key", keyOf(...args), STRING));
    const signal = turn.signal ?? signalOf?.(...args);
    if (signal !== undefined) check("signal", signal, SIGNAL);
    const notAfter = clock.now() + msOf(turn.maxWait ?? maxWait);
    return queues.get(key).run({ count, priority, signal, notAfter }, () => fn.apply(self, args));
  }

  const throttled = queues.shownBy(function (this: T, ...args: A): Promise<Awaited<R>> {
    return call(this, args, {});
  });
  const methods = Object.assign(throttled, {
    with(turn: TurnOptions) {
      checkTable("with", turn, TURN);
      const settings = { ...turn };
      return function (this: T, ...args: A): Promise<Awaited<R>> {
        return call(this, args, settings);
      };
    },
    clear: (reason: unknown = abortError("the queue was cleared")) => queues.clear(reason),
  });
  return Object.defineProperties(methods, {
    name: { value: fn.name, configurable: true },
    length: { value: fn.length, configurable: true },
  }) as Throttled<T, A, R>;
}
