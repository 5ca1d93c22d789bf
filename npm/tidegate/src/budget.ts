/**
 * Budgets for work whose cost is known only afterwards, such as a language model's tokens.
 *
 * @module
 */
import type { AllDecision, Decision } from "./decision.ts";
import { InputError } from "./errors.ts";
import type { Limiter } from "./limiter.ts";
import { settleUp, type Ledger } from "./middleware/settlement.ts";
import { checkFields, fieldTable } from "./config.ts";
import type { Store } from "./store.ts";

/** What {@link spend} is told. */
export interface SpendOptions<N extends string> {
  /** The limits that it counts against, all at once: such as tokens per minute and per day. */
  limits: readonly N[];
  /** Whose budget; default one that all share. */
  key?: string | undefined;
  /** Tokens that it will probably take: what is set aside before it runs. 0 to 2^40; better too many than too few. */
  estimate: number;
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

const OPTIONS = fieldTable("limits", "key", "estimate");

/**
 * Sets the estimate aside on every limit, or on none; runs the work; then gives back what it did not use, or charges what it
 * used beyond. Where the limits have too little the work does not run, and `decided.retryAt` tells when it could.
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
  if (typeof options !== "object" || options === null)
    throw new InputError("options", "an object with limits and estimate", options);
  checkFields(options, OPTIONS, "spend");
  const { limits, key, estimate } = options;
  if (!Array.isArray(limits)) throw new InputError("limits", "an array of names of limits", limits);
  if (typeof work !== "function") throw new InputError("work", "a function", work);
  tokens("estimate", estimate);
  const taken = (limits as readonly N[]).map((name) => ({ name, key, count: estimate }));
  const decided: AllDecision = await limiter.limitAll(taken);
  if (!decided.ok) return { ok: false, decided };
  let said: number | undefined;
  const used = (count: number): void => {
    said = tokens("used", count);
  };
  const settle = (count: number): Promise<void> =>
    settleUp(limiter as unknown as Ledger, taken, decided.decisions as Decision[], count);
  let value: T;
  try {
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
