/** The scenarios: each sets the policy and the traffic, and says what to look at. */
import { type Draft, FIRST } from "./policy.ts";
import type { Traffic } from "./traffic.ts";

export interface Scenario {
  title: string;
  look: string;
  draft: Draft;
  traffic: Traffic;
  /** Tokens per request, and whether they may be owed. */
  count: number;
  reserve: boolean;
  /** Requests sent immediately when it starts. */
  burst: number;
}

const OFF: Traffic = { pattern: "off", perSecond: 5, size: 30 };
const base = { draft: FIRST, traffic: OFF, count: 1, reserve: false, burst: 0 };
const window = { ...FIRST, kind: "fixed window", rate: 20, period: 5_000 } as const;

export const SCENARIOS: readonly Scenario[] = [
  {
    ...base,
    title: "A burst, and filling again",
    look: "Thirty requests at once. Twenty are granted; then ten tokens return every second, evenly.",
    burst: 30,
  },
  {
    ...base,
    title: "60 requests a second",
    look: "The saved-up tokens go first. From then on ten a second are granted, and fifty denied: the denials cost nothing.",
    traffic: { ...OFF, pattern: "sixty" },
  },
  {
    ...base,
    title: "Debt and reservation",
    look: "Tokens are taken ahead of time: the value goes below zero, and each grant says when it is paid for.",
    draft: { ...FIRST, rate: 5 },
    traffic: { ...OFF, pattern: "bursty", size: 30 },
    reserve: true,
  },
  {
    ...base,
    title: "Windows",
    look: "All tokens of a window come at its start. Steady traffic uses them up, and then waits for the next.",
    draft: window,
    traffic: { ...OFF, pattern: "steady", perSecond: 8 },
  },
  {
    ...base,
    title: "A herd",
    look: "Forty denied clients retry at their `retryAt`: all of them, in one millisecond.",
    draft: { ...window, rate: 10, capacity: 10 },
    traffic: { ...OFF, pattern: "herd", size: 40 },
  },
  {
    ...base,
    title: "The herd with jitter",
    look: "The same clients; jitter() spreads them. No retry is early, and the spike is gone.",
    draft: { ...window, rate: 10, capacity: 10 },
    traffic: { ...OFF, pattern: "herd with jitter", size: 40 },
  },
  {
    ...base,
    title: "Shards",
    look: "Eight rows share the limit. A request takes from the better of two; only where all together lack tokens is it denied.",
    draft: { ...FIRST, rate: 16, capacity: 40, shards: 8 },
    traffic: { ...OFF, pattern: "steady", perSecond: 25 },
  },
];
