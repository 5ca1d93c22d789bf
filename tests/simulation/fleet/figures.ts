/** The results of a run. */
import { TOLERANCE } from "./meter.ts";
import { type Scenario, shardsOf } from "./scenario.ts";
import type { Hot, Tally } from "./tally.ts";

/** Fractions are from 0 to 1, tokens and times have four digits after the point. */
export interface Figures {
  /** Requests that arrived at a running node. */
  readonly calls: number;
  readonly granted: number;
  readonly denied: number;
  /** Requests that the store did not answer in time, or whose process was killed. */
  readonly unanswered: number;
  /** Responses after the call's deadline. Must be 0. */
  readonly late: number;
  /** Script calls that took from one limit of a pair only. Must be 0. */
  readonly torn: number;
  /**
   * Tokens beyond the limit: taken at the servers in any span, and granted since the beginning; of each shard by itself,
   * if there are several. Must be 0.
   */
  readonly overAdmitted: number;
  /** The same of all shards together: 0 as long as the servers' clock is not set back. */
  readonly overTogether: number;
  /** The most tokens granted in any span beyond `capacity + rate x time`: leased or in flight before. */
  readonly burst: number;
  /** Tokens granted, divided by what one bucket in one place would have granted to the same requests. */
  readonly utilization: number;
  /** Of the tokens that left the servers: the fraction that was neither granted, given back nor still leased at the end. */
  readonly stranded: number;
  /** Tokens granted or leased that never left a server. Must be 0. */
  readonly unaccounted: number;
  /** Jain's index of the nodes' granted fraction of their requests for the most frequent key. */
  readonly jain: number;
  /** The same of one bucket in one place: the effect of chance alone. */
  readonly jainIdeal: number;
  /** The granted fraction of node 0, and of all others, for the most frequent key. */
  readonly largeShare: number;
  readonly smallShare: number;
  /** Script calls per second, and keys in them (a step is one key in one script call). */
  readonly tripsPerSecond: number;
  readonly stepsPerSecond: number;
  readonly stepsPerCall: number;
  /** Denials whose `retryAt` was correct, too early or too late; `null` if no observer can decide that. */
  readonly retryAt: { readonly exact: number; readonly early: number; readonly late: number } | null;
  /** ms from a request's arrival to its response. */
  readonly waitP50: number;
  readonly waitP99: number;
}

/** Jain's index: 1 if all have the same, 1/n if one has all; 1 for none. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return squares === 0 ? 1 : (sum * sum) / (shares.length * squares);
}

/** Four digits after the point: more would have no meaning. Adding 0 makes -0 a 0. */
export const rounded = (value: number): number => Math.round(value * 1e4) / 1e4 + 0;

const ratio = (a: number, b: number): number => (b === 0 ? 0 : rounded(a / b));
const beyond = (tokens: number): number => (tokens > TOLERANCE ? rounded(tokens) : 0);

/** The quantile: the value that this fraction does not exceed. */
export function quantile(sorted: Float64Array, fraction: number): number {
  return sorted[Math.max(Math.ceil(sorted.length * fraction) - 1, 0)] ?? 0;
}

/** The results of a finished run, with so many tokens leased at its end, and with `taken` and `given` at that time. */
export function figuresOf(
  scenario: Scenario,
  tally: Tally,
  {
    leased,
    taken,
    given,
    trips,
    steps,
  }: { leased: number; taken: number; given: number; trips: number; steps: number },
): Figures {
  const seconds = scenario.lasts / 1000;
  const { calls, retries } = tally;
  const denials = retries.exact + retries.early + retries.late;
  const requested = tally.hot.filter((hot) => hot.requested > 0);
  const share = (nodes: readonly Hot[]): number => {
    const sum = (of: (hot: Hot) => number): number => nodes.reduce((total, hot) => total + of(hot), 0);
    return ratio(
      sum((hot) => hot.granted),
      sum((hot) => hot.requested),
    );
  };
  const left = taken - given - tally.tokens - leased;
  const waits = Float64Array.from(tally.waits).sort();
  const observed = scenario.mode.name !== "lease" && scenario.mode.name !== "pairs";
  return {
    calls,
    granted: ratio(tally.granted, calls),
    denied: ratio(tally.denied, calls),
    unanswered: ratio(tally.failed + tally.lost, calls),
    late: tally.late,
    torn: tally.torn,
    overAdmitted: beyond(tally.over),
    overTogether: shardsOf(scenario.mode) > 1 ? beyond(tally.overTogether) : 0,
    burst: beyond(tally.burst),
    utilization: ratio(tally.tokens, tally.ideal),
    stranded: ratio(Math.max(left, 0), taken),
    unaccounted: beyond(-left),
    jain: rounded(jain(requested.map((hot) => hot.granted / hot.requested))),
    jainIdeal: rounded(jain(requested.map((hot) => hot.ideal / hot.requested))),
    largeShare: share(tally.hot.slice(0, 1)),
    smallShare: share(tally.hot.slice(1)),
    tripsPerSecond: rounded(trips / seconds),
    stepsPerSecond: rounded(steps / seconds),
    stepsPerCall: ratio(steps, calls),
    retryAt:
      observed && denials > 0
        ? {
            exact: ratio(retries.exact, denials),
            early: ratio(retries.early, denials),
            late: ratio(retries.late, denials),
          }
        : null,
    waitP50: rounded(quantile(waits, 0.5) / 1000),
    waitP99: rounded(quantile(waits, 0.99) / 1000),
  };
}
