/**
 * Budgets for work whose cost is known only afterwards, such as a language model's tokens.
 *
 * @module
 */
import type { AllDecision, Decision } from "../limit/decision.ts";
import { InputError, showInstead } from "../limit/errors.ts";
import type { Limiter } from "./limiter.ts";
import { settleUp, type Ledger } from "../middleware/settlement.ts";
import { checkFields, fieldTable } from "../limit/config.ts";
import type { Store } from "../stores/contract.ts";

/** What {@link spend} is told. */
export interface SpendOptions<N extends string> {
  /** The limits that it counts against, all at once: such as tokens per minute and per day. */
  limits: readonly N[];
  /** Whose budget; default one that all share. */
  key?: string | undefined;
  /** Tokens that it will probably take: what is set aside before it runs. 0 to 2^40; better too many than too few. */
  estimate: number;
  /**
   * Most ms to wait where there is too little now: 0 to 2147483647; default 0. The estimate is reserved, so the turn is paid
   * for and comes for sure; limits lend up to their `maxReserved`, and a window of theirs only at its end.
   */
  wait?: number | undefined;
  /** Ends the wait: what was set aside is given back, and the signal's reason comes through. */
  signal?: AbortSignal | undefined;
  /** Waits so many ms, or less once the signal says so; default a timer. Give one in tests. */
  sleep?: ((ms: number, signal: AbortSignal | undefined) => Promise<void>) | undefined;
}

/** What the work is given. */
export interface Spending {
  /** Says what was used so far, in place of what was said before: what counts where the work fails halfway. */
  used(tokens: number): void;
  /** What let it run. */
  readonly decided: AllDecision;
}

/** What came of it. */
export type Spent<T> =
  | { readonly ok: true; readonly value: T; readonly used: number; readonly decided: AllDecision }
  | { readonly ok: false; readonly decided: AllDecision };

const OPTIONS = fieldTable("limits", "key", "estimate", "wait", "signal", "sleep");
/** The longest that a timer takes. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Sets the estimate aside on every limit, or on none; runs the work; then gives back what it did not use, or charges what it
 * used beyond. Where the limits have too little the work does not run, and `decided.retryAt` tells when it could; with `wait`
 * it reserves its turn, and runs when that comes. A turn that would come later than that is given back at once.
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
 * Work that says nothing used the estimate; work that throws used what it said before, or nothing, and its error comes
 * through after that is settled. Where the store failed at the decision there is nothing to settle. Throws an `InputError`
 * where an option is wrong, before anything is taken, and at `used` for what is no number of tokens.
 */
export async function spend<T, N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: SpendOptions<NoInfer<N>>,
  work: (spending: Spending) => T | Promise<T>,
): Promise<Spent<T>> {
  if (typeof limiter?.limitAll !== "function") {
    throw new InputError("limiter", "what defineLimits returns", limiter, showInstead(limiter));
  }
  if (typeof options !== "object" || options === null)
    throw new InputError("options", "an object with limits and estimate", options);
  checkFields(options, OPTIONS, "spend");
  const { limits, key, estimate, wait = 0, signal, sleep = timer } = options;
  if (!Array.isArray(limits)) throw new InputError("limits", "an array of names of limits", limits);
  if (typeof work !== "function") throw new InputError("work", "a function", work);
  tokens("estimate", estimate);
  if (typeof wait !== "number" || !(wait >= 0 && wait <= LONGEST_MS))
    throw new InputError("wait", `a number of ms from 0 to ${LONGEST_MS}`, wait);
  if (typeof sleep !== "function") throw new InputError("sleep", "a function that waits", sleep);
  if (signal !== undefined && typeof signal?.throwIfAborted !== "function")
    throw new InputError("signal", "an AbortSignal", signal);
  signal?.throwIfAborted();
  const taken = (limits as readonly N[]).map((name) => ({ name, key, count: estimate, reserve: wait > 0 }));
  const decided: AllDecision = await limiter.limitAll(taken);
  if (!decided.ok) return { ok: false, decided };
  let said: number | undefined;
  const used = (count: number): void => {
    said = tokens("used", count);
  };
  const settle = (count: number): Promise<void> =>
    settleUp(limiter as unknown as Ledger, taken, decided.decisions as Decision[], count);
  const { retryAfter = 0 } = decided;
  if (retryAfter > wait) {
    await settle(0);
    return { ok: false, decided: { ...decided, ok: false } };
  }
  let value: T;
  try {
    if (retryAfter > 0) await sleep(retryAfter, signal);
    signal?.throwIfAborted();
    value = await work({ used, decided });
  } catch (error) {
    await settle(said ?? 0);
    throw error;
  }
  await settle(said ?? estimate);
  return { ok: true, value, used: said ?? estimate, decided };
}

function tokens(field: string, count: unknown): number {
  if (typeof count === "number" && count >= 0 && count <= 2 ** 40) return count;
  throw new InputError(field, "a finite number of tokens from 0 to 1099511627776", count);
}

/** A timer that a signal ends early; one that has fired already tells no listener. */
function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      clearTimeout(timeout);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timeout = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
