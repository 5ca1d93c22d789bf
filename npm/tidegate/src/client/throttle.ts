import {
  checkFunction,
  checkKey,
  checkOptions,
  checkPriority,
  checkSignal,
  checkTokens,
  checkTurn,
  DEFAULT_PRIORITY,
  type ThrottleOptions,
  type TurnOptions,
} from "./options.ts";
import { Queues } from "./queues.ts";
import type { Semaphore } from "./semaphore.ts";
import { type Policy, type Source, sourcesOf } from "./source.ts";
import { submit } from "./submit.ts";

/** A function whose calls wait for their turn. `this` is what it was for the call. */
export interface Throttled<T, A extends unknown[], R> {
  /** Resolves or rejects as the function does, once it was the call's turn. */
  (this: T, ...args: A): Promise<Awaited<R>>;
  /** The same function, for calls that say something for themselves: `ask.with({ signal, priority: 9 })(question)`. */
  with(options: TurnOptions): (this: T, ...args: A) => Promise<Awaited<R>>;
  /** Calls that wait. */
  readonly queued: number;
  /** Calls that run. */
  readonly running: number;
  /** Resolves once nothing waits and nothing runs. */
  idle(): Promise<void>;
  /** Takes no more calls: they reject with a {@link QueueError}. Resolves once those that are in are through. */
  drain(): Promise<void>;
  /** Gives up all that waits: it rejects with this reason, by default an `AbortError`, and its tokens go back. */
  clear(reason?: unknown): void;
}

/**
 * A function whose calls run when their tokens are there: in order, and spaced as the policy says. Each call reserves its
 * tokens when it is made, so its time is known from then on; nothing polls, and one timer waits for whoever is next.
 *
 * ```ts
 * const ask = throttle(askModel, { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 });
 * const answers = await Promise.all(questions.map((question) => ask(question)));
 * ```
 *
 * `policy` is a config, for a limit of its own in memory; or `{ limiter, name, key }`, a limit that others use too: with a
 * store on a server, a whole fleet. `capacity` is how many run at once after a pause; with 0 all are spaced. A fixed window
 * runs what it has at each window's start.
 *
 * A call that is aborted while it waits rejects with the signal's reason; its tokens go back, and later calls move up. As
 * much as others have reserved behind it stays with this queue instead, for its next calls: their times are settled. A
 * call whose reservation is denied (`maxReserved`) rejects with a `RateLimitError`; where the store failed and
 * `onStoreError` denies, with its error. Where calls could not run in time (a blocked event loop, no free place), they catch
 * up by no more than the capacity and one call.
 *
 * Throws an `InputError` at once where the policy or an option is wrong; what is wrong with one call rejects that call.
 */
export function throttle<T, A extends unknown[], R, const N extends string = string>(
  fn: (this: T, ...args: A) => R,
  policy: Policy<N>,
  options: ThrottleOptions<NoInfer<A>> = {},
): Throttled<T, A, R> {
  const { clock } = checkOptions(options);
  return queued(
    fn,
    options,
    sourcesOf(policy, () => clock.now()),
  );
}

/**
 * A function of which so many calls run at once, in the interface of {@link throttle}: further ones wait in order.
 *
 * ```ts
 * const load = concurrent(loadPage, 4);
 * ```
 *
 * `places` is a whole number from 1, or a semaphore that others use too.
 */
export function concurrent<T, A extends unknown[], R>(
  fn: (this: T, ...args: A) => R,
  places: number | Semaphore,
  options: Omit<ThrottleOptions<NoInfer<A>>, "concurrency" | "count"> = {},
): Throttled<T, A, R> {
  return queued(fn, { ...options, concurrency: places }, undefined);
}

function queued<T, A extends unknown[], R>(
  fn: (this: T, ...args: A) => R,
  options: ThrottleOptions<A>,
  sources: ((key?: string) => Source) | undefined,
): Throttled<T, A, R> {
  checkFunction("fn", fn);
  const { clock, maxQueued, semaphore, maxWait: maxWaitOfAll } = checkOptions(options);
  const { count: counted, priority: ranked, key: keyOf, signal: signalOf } = options;
  const queues = new Queues((key) => ({ clock, maxQueued, semaphore, source: sources?.(key) }));

  function call(self: T, args: A, turn: TurnOptions): Promise<Awaited<R>> {
    try {
      const count = turn.count ?? (typeof counted === "function" ? checkTokens(counted(...args)) : counted) ?? 1;
      const priority = turn.priority ?? (typeof ranked === "function" ? checkPriority(ranked(...args)) : ranked);
      const key = turn.key ?? checkKey(keyOf?.(...args));
      const signal = turn.signal ?? checkSignal(signalOf?.(...args));
      const maxWait = turn.maxWait ?? maxWaitOfAll;
      const notAfter = maxWait === undefined ? undefined : clock.now() + maxWait;
      const told = { count, priority: priority ?? DEFAULT_PRIORITY, signal, notAfter };
      return submit(queues.get(key), told, () => fn.apply(self, args));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  function throttled(this: T, ...args: A): Promise<Awaited<R>> {
    return call(this, args, NONE);
  }
  const parts: Omit<Throttled<T, A, R>, "queued" | "running"> = Object.assign(throttled, {
    with(turn: TurnOptions) {
      const checked = { ...checkTurn(turn) };
      return function (this: T, ...args: A): Promise<Awaited<R>> {
        return call(this, args, checked);
      };
    },
    idle: () => queues.idle(),
    drain: () => queues.drain(),
    clear: (reason: unknown = new DOMException("the queue was cleared", "AbortError")) => queues.clear(reason),
  });
  return Object.defineProperties(parts, {
    name: { value: fn.name, configurable: true },
    length: { value: fn.length, configurable: true },
    queued: { get: () => queues.queued },
    running: { get: () => queues.running },
  }) as Throttled<T, A, R>;
}

const NONE: TurnOptions = Object.freeze({});
