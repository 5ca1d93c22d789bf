import { DAY, defineLimits, MINUTE } from "../src/index.ts";
import type { Store } from "../src/stores/contract.ts";
import { fakeClock } from "../src/testing/clock.ts";

export const POLICIES = {
  perMinute: { kind: "token bucket", rate: 1000, period: MINUTE },
  perDay: { kind: "token bucket", rate: 5000, period: DAY },
} as const;
export const BOTH = ["perMinute", "perDay"] as const;

/** Both limits on a clock, and their tokens. */
export function budget(store?: Store) {
  const clock = fakeClock();
  const limits = defineLimits(POLICIES, { now: clock.now, ...(store === undefined ? {} : { store }) });
  const left = async () => [(await limits.getValue("perMinute")).value, (await limits.getValue("perDay")).value];
  return { clock, limits, left };
}
