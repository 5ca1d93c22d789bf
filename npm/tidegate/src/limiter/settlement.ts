/** The correction of what was taken to what the work was worth in the end. */
import { MAX_COUNT } from "../engine/generated/bounds.ts";
import type { Decision } from "../limit/decision.ts";
import { InputError } from "../limit/errors.ts";
import type { Limiter } from "./limiter.ts";
import { keyed, type LimitRequest } from "./options.ts";

/** Tokens that a request was worth in the end: of each of its limits, or by name. */
export type Worth = number | Readonly<Record<string, number>> | undefined;

/** Gives back, or charges, the difference between what was taken and what it was worth. */
export async function settleUp(
  ledger: Pick<Limiter, "give" | "charge">,
  taken: readonly LimitRequest<string>[],
  decisions: readonly Decision[],
  worth: Worth,
): Promise<void> {
  if (worth === undefined) return;
  const isByName = typeof worth === "object" && worth !== null;
  const due = taken.map(({ name, count = 1 }, i) => {
    const tokens = !isByName ? worth : Object.hasOwn(worth, name) ? worth[name] : undefined;
    // Neither a degraded decision nor a denial in shadow mode took tokens from the store: giving them back would create some.
    if (tokens === undefined || decisions[i]?.degraded === true || decisions[i]?.shadow?.ok === false) return 0;
    if (typeof tokens !== "number" || !(tokens >= 0 && tokens <= MAX_COUNT)) {
      throw new InputError("settle", `tokens from 0 to ${MAX_COUNT}, an object of them by name, or undefined`, tokens);
    }
    return tokens - count;
  });
  await Promise.all(
    taken.map(({ name, key, config }, i) => {
      const difference = due[i] as number;
      if (difference === 0) return undefined;
      const call = { count: Math.abs(difference), config, ...keyed(key) };
      return difference > 0 ? ledger.charge(name, call) : ledger.give(name, call);
    }),
  );
}
