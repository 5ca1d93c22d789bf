/**
 * Budgets for work whose cost is known only afterwards, such as a language model's tokens.
 *
 * @module
 */
import { throwIfAborted, whenAborted } from "../limit/abort.ts";
import { combined } from "../limit/combined.ts";
import type { Config } from "../limit/config.ts";
import type { AllDecision, Decision, Reason, State } from "../limit/decision.ts";
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
 * If the limits have too few tokens, the work does not run, and `decided.retryAt` is the first millisecond at which the same call
 * runs it. With `wait` the call reserves the tokens and runs the work when they are due, unless that takes longer than `wait`.
 * There is no `retryAt` if it always does: the estimate is above a limit's capacity, and the rest takes longer to refill.
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
  if (!decided.ok || (decided.retryAfter ?? 0) > wait) {
    if (decided.ok) await settle(0);
    return { ok: false, decided: late(decided, { count: estimate, wait }) };
  }
  let value: T;
  try {
    if (decided.retryAfter !== undefined) await sleep(decided.retryAfter, signal);
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

/** An estimate, and the longest wait for it in ms. */
interface Estimate {
  readonly count: number;
  readonly wait: number;
}

/** Evaluations until a turn is found, or never: a refused reservation, one too late, a key that is full by then, rounding. */
const MOST_TRIES = 8;
/** Turns that several limits are compared at; windows that begin together have a common turn sooner, or never. */
const MOST_ROUNDS = 100;

/**
 * The decision on an estimate that was not reserved, or was given back as it would be due too late: denied until the first
 * millisecond at which every limit reserves it for a time within `wait`.
 */
function late(decided: AllDecision, estimate: Estimate): AllDecision {
  if (decided.decisions.some(({ ok, degraded }) => !ok && degraded === true)) return decided;
  const { now } = decided.decisions[0] as Decision;
  const isInTime = ({ ok, retryAfter = 0 }: Decision): boolean => ok && retryAfter <= estimate.wait;
  const turnsFrom = (at: number): (number | Reason)[] => decided.decisions.map((one) => turnFrom(one, at, estimate));
  const first = turnsFrom(now);
  let turns = first;
  let at = latest(turns);
  // In a window that is smaller than the estimate a turn ends, so it may be over when another limit's begins.
  for (let rounds = 0; at !== undefined && turns.some((turn) => turn !== at); rounds++) {
    turns = rounds < MOST_ROUNDS ? turnsFrom(at) : turns.map(() => "exceeds capacity");
    at = latest(turns);
  }
  const decisions = decided.decisions.map((one, index) => {
    const never = typeof turns[index] === "string";
    return isInTime(one) && !never ? one : denied(one, estimate, (never ? turns : first)[index] as number | Reason);
  });
  const retryAfter = at === undefined ? undefined : at - now;
  return { ...decided, ...combined(decisions, now), retryAt: at, retryAfter };
}

/** The latest of the turns; `undefined` if one never comes. */
const latest = (turns: readonly (number | Reason)[]): number | undefined =>
  turns.reduce<number | undefined>(
    (most, turn) => (most === undefined || typeof turn === "string" ? undefined : Math.max(most, turn)),
    0,
  );

/** A limit's state before the call, and its numbers for `evaluate`. */
function beforeOf({ ok, value, ts, policy }: Decision, count: number): [State, Config] {
  const { name: _, ...config } = policy;
  // The sum is rounded, and a key that was full is different from one that is almost full.
  const before = ok ? value + count : value;
  const state = { value: before > config.capacity * (1 - 1e-9) ? config.capacity : before, ts };
  // A window that is derived from the key begins at `ts`.
  const isDerived = config.kind === "fixed window" && config.start !== "first request";
  return [state, isDerived ? { ...config, start: ts % config.period } : config];
}

/** The first millisecond from `at` on at which the limit reserves the estimate for a time within `wait`, or why there is none. */
function turnFrom(decision: Decision, at: number, { count, wait }: Estimate): number | Reason {
  const [state, config] = beforeOf(decision, count);
  let turn = at;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const { ok, retryAt = turn, reason } = evaluate(state, config, { now: turn, count, reserve: true }).decision;
    if (reason !== undefined) return reason;
    if (ok && retryAt - turn <= wait) return turn;
    turn = ok ? Math.max(Math.ceil(retryAt - wait), turn + 1) : retryAt;
  }
  // Each time the key was full before its turn.
  return "exceeds capacity";
}

/** A limit's decision when the estimate has to wait for its turn, or never gets one. */
function denied(decision: Decision, { count }: Estimate, turn: number | Reason): Decision {
  const { now } = decision;
  const [state, config] = beforeOf(decision, count);
  const { value, remaining, resetAt } = evaluate(state, config, { now, count: 0 }).decision;
  const held = { ...decision, ok: false, reserved: false, value, remaining, resetAt };
  return typeof turn === "string"
    ? { ...held, retryAt: undefined, retryAfter: undefined, reason: turn }
    : { ...held, retryAt: turn, retryAfter: turn - now };
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
