/**
 * Budgets for work whose cost is known only afterwards, such as a language model's tokens.
 *
 * @module
 */
import { throwIfAborted, whenAborted } from "../limit/abort.ts";
import { combined } from "../limit/combined.ts";
import type { Config } from "../limit/config.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import {
  ANY,
  type Check,
  check,
  checkTable,
  durationFrom,
  FUNCTION,
  functionThat,
  msOf,
  SIGNAL,
} from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import { delayFor, type Duration, LONGEST_TIMER } from "../limit/duration.ts";
import { InputError, show } from "../limit/errors.ts";
import { evaluate } from "../limit/evaluate.ts";
import type { Limiter } from "./limiter.ts";
import { checkKey, MAX_REQUESTS } from "./calls.ts";
import { checkLimiter } from "./check-limiter.ts";
import { type Keyed, keyed } from "./options.ts";
import { settleUp } from "./settlement.ts";

/** Settings of {@link spend}; without `key` it is one budget for all. */
export type SpendOptions<N extends string> = Keyed & SpendSettings<N>;

interface SpendSettings<N extends string> {
  /** The limits that it counts against together, such as tokens per minute and per day. */
  limits: readonly N[];
  /** Tokens to set aside before the work runs: 0 to 2^40. Estimate high. */
  estimate: number;
  /**
   * The longest wait for tokens: ms from 0 to 2147483647, or a string such as `"30s"`; default 0. The estimate is reserved, up
   * to each limit's `maxReserved`, so the turn is certain.
   */
  wait?: Duration | undefined;
  /** Aborts the wait: the tokens are returned, and the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Waits `ms`, or until the signal is aborted; default a timer. Pass one in tests. */
  sleep?: ((ms: number, signal: AbortSignal | undefined) => Promise<void>) | undefined;
}

/**
 * The argument of the work. `used` is not a method, so that `({ used }) => …` passes `unbound-method` of
 * typescript-eslint.
 */
export interface Spending {
  /** Sets the tokens used so far; they also count if the work fails later. A later call replaces an earlier one. */
  readonly used: (tokens: number) => void;
  /** The decision that let it run. */
  readonly decided: AllDecision;
}

/** What became of the work: its value and what it used, or `ok: false` if it did not run. */
export type Spent<T> =
  | { readonly ok: true; readonly value: T; readonly used: number; readonly decided: AllDecision }
  | { readonly ok: false; readonly decided: AllDecision };

const NAMES: Check = { expects: `an array of 1 to ${MAX_REQUESTS} different names of limits`, accepts: Array.isArray };
const OPTIONS: Readonly<Record<keyof SpendOptions<string>, Check>> = {
  limits: NAMES,
  key: ANY,
  estimate: TOKENS,
  wait: durationFrom(0, LONGEST_TIMER),
  signal: SIGNAL,
  sleep: functionThat("a function that waits"),
};

/**
 * Sets the estimate aside on every limit, or on none; runs the work; then returns the unused tokens, or charges the excess.
 * If the limits have too few tokens, the work does not run, and `decided.retryAt` is when it could. With `wait` it reserves the
 * tokens and runs when they are due, unless that takes longer than `wait`. There is no `retryAt` if it always does: the estimate
 * is above a limit's capacity, and the rest takes longer than `wait` to refill.
 *
 * ```ts
 * const answer = await spend(limits, { limits: ["tokensPerMinute", "tokensPerDay"], key: userId, estimate: 1500 }, async ({ used }) => {
 *   const completion = await model.complete(prompt, { maxTokens: 1000 });
 *   used(completion.usage.totalTokens);
 *   return completion;
 * });
 * if (!answer.ok) return tooMany(answer.decided.retryAfter);
 * ```
 *
 * Work that does not call `used` used the estimate. Work that throws used what it set before, or nothing; the call rejects
 * with its error after settling. If the store failed at the decision there is nothing to settle. Throws an
 * `InputError` if an option is wrong, before anything is taken, and at `used` for an invalid number.
 */
export async function spend<T, N extends string>(
  limiter: Limiter<N>,
  options: SpendOptions<NoInfer<N>>,
  work: (spending: Spending) => T | Promise<T>,
): Promise<Spent<T>> {
  checkLimiter(limiter, "limitAll");
  checkTable("spend", options, OPTIONS, "an object with limits and estimate");
  const { limits, estimate, signal, sleep = timer } = options;
  const wait = msOf(options.wait ?? 0);
  check("limits", limits, NAMES);
  if (limits.length < 1 || limits.length > MAX_REQUESTS) {
    throw new InputError("limits", NAMES.expects, limits, `${limits.length} names`);
  }
  const twice = limits.find((name, index) => limits.indexOf(name) < index);
  if (twice !== undefined) throw new InputError("limits", NAMES.expects, limits, `${show(twice)} twice`);
  check("work", work, FUNCTION);
  check("estimate", estimate, TOKENS);
  const whose = keyed(checkKey(options));
  throwIfAborted(signal);
  const taken = (limits as readonly N[]).map((name) => ({ name, ...whose, count: estimate, reserve: wait > 0 }));
  const decided: AllDecision = await limiter.limitAll(taken);
  if (!decided.ok && wait === 0) return { ok: false, decided };
  let actual: number | undefined;
  const used = (count: number): void => {
    actual = check("used", count, TOKENS);
  };
  const settle = (count: number): Promise<void> => settleUp(limiter, taken, decided.decisions, count);
  const { retryAfter = 0 } = decided;
  if (!decided.ok || retryAfter > wait) {
    if (decided.ok) await settle(0);
    // Of those that were refused, one whose turn would come in time denies nothing.
    const isLate = ({ reserved, retryAfter: own = 0 }: Decision): boolean => reserved && (decided.ok || own > wait);
    const decisions = decided.decisions.map((decision) =>
      isLate(decision) || isOwing(decision) ? denied(decision, estimate, wait) : decision,
    );
    return { ok: false, decided: { ...decided, ...combined(decisions, (decisions[0] as Decision).now) } };
  }
  let value: T;
  try {
    if (retryAfter > 0) await sleep(retryAfter, signal);
    throwIfAborted(signal);
    value = await work({ used, decided });
  } catch (error) {
    // What it rejects with is the reason, if the host's transaction, and so the settlement, fails with it.
    await settle(actual ?? 0).catch(() => {});
    throw error;
  }
  await settle(actual ?? estimate);
  return { ok: true, value, used: actual ?? estimate, decided };
}

/** Denied for now, as more would be owed than `maxReserved`. */
const isOwing = ({ ok, degraded, reason }: Decision): boolean => !ok && degraded !== true && reason === undefined;

/**
 * A reservation of this many tokens, given back or refused, as a check returns it: denied until `retryAt`, when it would be
 * due, or for ever.
 */
function denied(decision: Decision, count: number, wait: number): Decision {
  const { ok, value, ts, now, policy } = decision;
  const { name: _, ...config } = policy;
  const isWindow = config.kind === "fixed window";
  // A window that is derived from the key begins at `ts`.
  const limit = isWindow ? { ...config, start: ts % config.period } : config;
  const before = { value: ok ? value + count : value, ts };
  const due = ok
    ? decision
    : evaluate(before, { ...limit, maxReserved: undefined }, { now, count, reserve: true }).decision;
  // Not before the clock ends.
  if (!due.ok) return { ...due, policy };
  const { retryAt = now, retryAfter = 0 } = due;
  const never = (): Decision => ({ ...evaluate(before, limit, { now, count }).decision, policy });
  let later = 0;
  if (count > policy.capacity && config.kind === "fixed window" && config.start === "first request") {
    const at = ownTurn(before, config, { now, count, wait, due: retryAt });
    if (at === undefined) return never();
    later = at - retryAt;
  } else if (count > policy.capacity) {
    // No key holds so much, and at `retryAt` this one is full. A turn that is too late then always is, unless it is the start
    // of a window, which comes nearer until the next one starts.
    const { retryAt: turn = retryAt } = evaluate(before, limit, { now: retryAt, count, reserve: true }).decision;
    later = Math.max(Math.ceil(turn - wait) - retryAt, 0);
    if (later >= (isWindow ? config.period : 1)) return never();
  }
  const { value: held, remaining, resetAt } = evaluate(before, limit, { now, count: 0 }).decision;
  const times = { retryAt: retryAt + later, retryAfter: retryAfter + later, resetAt };
  return { ...decision, ...times, ok: false, reserved: false, value: held, remaining };
}

/**
 * When a reservation in a window that begins at a request is due within `wait`; `undefined`: never. A full key's window begins
 * at the reservation, so no later one is due sooner.
 */
function ownTurn(
  { value, ts }: State,
  config: Config & { readonly capacity: number },
  { now, count, wait, due }: { now: number; count: number; wait: number; due: number },
): number | undefined {
  // The sum with the count is rounded.
  const state = { value: value > config.capacity * (1 - 1e-9) ? config.capacity : value, ts };
  const reserved = (at: number): Decision => evaluate(state, config, { now: at, count, reserve: true }).decision;
  let at = Math.max(Math.ceil(due - wait), now);
  let found = reserved(at);
  if (!found.ok && found.retryAt !== undefined) {
    at = found.retryAt;
    found = reserved(at);
  }
  return found.ok && (found.retryAfter ?? 0) <= wait ? at : undefined;
}

/** A timer that a signal ends early, also one aborted before. A sleep of the machine counts: see {@link delayFor}. */
function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const due = Date.now() + ms;
    let timeout: ReturnType<typeof setTimeout> | undefined;
    const end = (): void => {
      clearTimeout(timeout);
      forget?.();
      resolve();
    };
    const wait = (left: number): void => {
      const delay = delayFor(left);
      timeout = setTimeout(() => {
        // A clock that is set back prolongs nothing.
        const rest = Math.min(left - delay, due - Date.now());
        if (rest > 0) wait(rest);
        else end();
      }, delay);
    };
    const forget = signal && whenAborted(signal, end, undefined);
    wait(ms);
  });
}
